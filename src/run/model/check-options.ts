// Options of durable agents, calls and steps as plain JavaScript may pass them: a wrong one is refused, with its name, when the agent is
// created, not in the middle of a run. Pure.
import { LazarusError } from "../../platform/errors.ts";

const CLASSES = ["read", "idempotent", "once", "nested"];
const CHANGES = ["continue", "pin", "refuse"];

/** What `durable()` and `durableCall()` have in common. */
interface Options {
  readonly store?: unknown;
  readonly effects?: unknown;
  readonly onChange?: unknown;
  readonly approvalMs?: unknown;
  readonly graceMs?: unknown;
}

/** Throws RUN_AGENT_INVALID for an invalid option. */
export function checkOptions({ store, effects = {}, onChange, approvalMs, graceMs }: Options): void {
  if (typeof (store as { log?: { journal?: unknown } } | undefined)?.log?.journal !== "object")
    throw invalid("store is not a run store", 'openSqliteRunStore("runs.db")');
  for (const [tool, rule] of Object.entries(effects as object)) checkEffect(tool, rule);
  if (onChange !== undefined && !CHANGES.includes(onChange as string))
    throw invalid(`onChange is ${show(onChange)}`, `use one of: ${CHANGES.join(", ")}`);
  if (approvalMs !== undefined && !(isNumber(approvalMs) && approvalMs > 0))
    throw invalid(`approvalMs is ${show(approvalMs)}`, "use more than 0 milliseconds");
  if (graceMs !== undefined && !(isNumber(graceMs) && graceMs >= 0))
    throw invalid(`graceMs is ${show(graceMs)}`, "use 0 or more milliseconds");
}

function checkEffect(tool: string, rule: unknown): void {
  if (rule === undefined || CLASSES.includes(rule as string)) return;
  if (typeof (rule as { reconcile?: unknown } | null)?.reconcile === "function") return;
  const hint =
    rule === "reconcile"
      ? "pass the function that finds out: { reconcile: (effectId, input) => … }"
      : `use one of: ${CLASSES.join(", ")}, or { reconcile(effectId, input) }`;
  throw invalid(`tool ${tool} has the effect ${show(rule)}`, hint);
}

/** Throws USAGE for a step without a name, or one with a class that a step cannot have. */
export function checkStep(name: unknown, effect: unknown): void {
  if (typeof name !== "string" || name === "") {
    throw new LazarusError("USAGE", `a step needs a name; this one has ${show(name)}`, {
      hint: 'step("charge", () => …)',
    });
  }
  if (["read", "idempotent", "once"].includes(effect as string)) return;
  throw new LazarusError("USAGE", `step ${show(name)} has the effect ${show(effect)}`, {
    hint: "use one of: read, idempotent, once",
  });
}

/** Throws USAGE for a parameter of a run that could not be stored. */
export function checkRun(run: Readonly<Record<string, unknown>>): void {
  for (const name of ["thread", "caller", "queue"]) {
    const value = run[name];
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw usage(`${name} is ${show(value)}`, "use a text that is not empty, or leave it out");
    // PostgreSQL cannot store NUL, and a terminal interprets the others.
    if (value !== undefined && /\p{Cc}/u.test(value))
      throw usage(`${name} has a control character: ${show(value)}`, "use printable text");
  }
  const { priority } = run;
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw usage(`priority is ${show(priority)}`, "use an integer; higher comes first");
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && !Number.isNaN(value);
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function invalid(message: string, hint: string): LazarusError {
  return new LazarusError("RUN_AGENT_INVALID", message, { hint });
}

function usage(message: string, hint: string): LazarusError {
  return new LazarusError("USAGE", message, { hint });
}
