// Checks that a run that was read is complete: its rows are valid for this version, and no step is missing. A run that
// fails is reported as damaged and not changed. Pure.
import { LazarusError } from "../../platform/errors.ts";
import type { HeadRow } from "../journal/journal.ts";
import type { Entry } from "./entry.ts";

/** The error for a run with missing or inconsistent rows. */
export function damagedRun(runId: string, problem: string): LazarusError {
  return new LazarusError("RUN_DAMAGED", `run ${runId} ${problem}`, {
    hint: "restore the store from a checkpoint of its cell: lazarus checkpoints",
    details: { runId },
  });
}

/** Throws RUN_DAMAGED. */
export function checkRun(head: HeadRow, entries: readonly Entry[]): void {
  const steps = new Set<number>();
  let begun = false;
  for (const entry of entries) {
    const problem = problemOf(entry);
    if (problem !== undefined)
      throw damagedRun(head.id, `has ${problem} (${entry.kind} ${entry.step}.${entry.call})`);
    if (entry.kind === "response") steps.add(entry.step);
    if (entry.kind === "input") begun = true;
  }
  if (!begun) throw damagedRun(head.id, "has no input");
  for (let step = 1; step <= head.step; step += 1)
    if (!steps.has(step)) throw damagedRun(head.id, `has no response for step ${step} of its ${head.step}`);
}

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);
const STATES: ReadonlySet<string> = new Set(["prepared", "started", "done", "failed", "unknown"]);
const CLASSES: ReadonlySet<string> = new Set(["read", "idempotent", "once", "reconcile", "nested"]);

function problemOf({ kind, state, class: effectClass, value }: Entry): string | undefined {
  switch (kind) {
    case "input":
      return isInput(value) ? undefined : "an invalid input";
    case "response":
      return isResponse(value) ? undefined : "an invalid response";
    case "effect":
      if (!STATES.has(state)) return `an effect in state ${state}`;
      return effectClass === null || CLASSES.has(effectClass)
        ? undefined
        : `an effect of class ${effectClass}`;
    case "message":
      return isObject(value) && isMessage(value.message) ? undefined : "an invalid message";
    case "phase":
      return isObject(value) && typeof value.name === "string" && typeof value.output === "string"
        ? undefined
        : "an invalid output of a phase";
    default:
      return undefined;
  }
}

function isInput(value: unknown): boolean {
  if (!isObject(value)) return false;
  if (Array.isArray(value.approvals)) return true;
  const { input } = value;
  if (!isObject(input) || !isObject(input.call)) return false;
  const { messages, prompt } = input.call;
  const given = messages ?? (Array.isArray(prompt) ? prompt : []);
  return Array.isArray(given) && given.every(isMessage);
}

function isResponse(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { result, parts } = value;
  const items = isObject(result) ? result.content : parts;
  return items === undefined || (Array.isArray(items) && items.every(isObject));
}

function isMessage(value: unknown): boolean {
  if (!isObject(value) || !ROLES.has(value.role)) return false;
  return typeof value.content === "string" || (Array.isArray(value.content) && value.content.every(isObject));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
