// Forks a run: the new run shares the entries up to a step and continues independently. Effects after that step get their own ids;
// those of the original are listed, because the fork may repeat them. Nothing is copied but the
// answered requests for approval of the shared steps.
import { LazarusError } from "../../platform/errors.ts";
import type { HeadRow, WaitRow } from "../journal/journal.ts";
import { encodeRecord } from "../log/codec.ts";
import { type Entry, effectOf, HEAD_PLACES, NEW_HEAD } from "../log/entry.ts";
import { infoOf, loadRun, type RunLog, requireHead, timeOf } from "../log/run-log.ts";
import { createRunId, invalidRunId, isRunId } from "../model/run-id.ts";
import type { Effect } from "../model/types.ts";

/** What a fork changes. */
export interface ForkOptions {
  /** Default: a new id. */
  readonly runId?: string | undefined;
  /** The agent that continues it. Default: the same. */
  readonly agentId?: string | undefined;
}

/** A new run, and what the original did after the shared steps. */
export interface Fork {
  readonly head: HeadRow;
  /** Effects that have happened, or may have. */
  readonly happened: readonly Effect[];
}

/** Creates a run that shares the first `step` steps of another; 0 shares only the input. It waits to be continued. */
export async function forkRun(
  log: RunLog,
  runId: string,
  step: number,
  options: ForkOptions = {},
): Promise<Fork> {
  const { runId: wanted } = options;
  if (wanted !== undefined && !isRunId(wanted)) throw invalidRunId(wanted);
  const original = await requireHead(log, runId);
  const loaded = await loadRun(log, runId);
  if (loaded === undefined) throw notInserted(log, undefined, runId);
  const { entries } = loaded;
  const problem = forkProblem(original, entries, step);
  if (problem !== undefined) {
    throw new LazarusError("RUN_STEP_UNKNOWN", `run ${runId} cannot be forked at step ${step}: ${problem}`, {
      hint: `its last complete step is ${lastForkableStep(original, entries)}: --at ${lastForkableStep(original, entries)}`,
    });
  }
  const nowMs = timeOf(log);
  const id = options.runId ?? createRunId(log.machine, nowMs);
  const { agentId = original.agentId } = options;
  const info = { ...(infoOf(log, original) as object), runId: id, agentId, startedAtMs: nowMs };
  const { text } = await log.seal.seal(HEAD_PLACES.info(id), encodeRecord(info, "info"));
  const { caller, priority, thread, queue, model, format } = original;
  const head: HeadRow = {
    ...NEW_HEAD,
    ...{ id, agentId, caller, priority, thread, queue, format, info: text },
    ...(model === undefined ? {} : { model }),
    definition: agentId === original.agentId ? original.definition : null,
    ...{ forkOf: runId, forkStep: step, step, phase: phaseAt(entries, step) },
    status: queue === null ? "running" : "queued",
    ...{ epoch: 0, owner: null, leaseUntilMs: 0, redactions: 0, createdAtMs: nowMs, updatedAtMs: nowMs },
  };
  const waits = (await log.journal.readWaits(runId)).filter((wait) => isShared(wait, step));
  if (!(await log.journal.insert(head, [], waits))) throw notInserted(log, options.runId, runId);
  return { head, happened: happenedAfter(runId, entries, step) };
}

/** Runs the input of a run again, as a new run. */
export function rerunRun(log: RunLog, runId: string, options: ForkOptions = {}): Promise<Fork> {
  return forkRun(log, runId, 0, options);
}

function notInserted({ journal }: RunLog, id: string | undefined, runId: string): LazarusError {
  if (id === undefined)
    return new LazarusError("RUN_UNKNOWN", `run ${runId} is no longer in ${journal.place}`, {
      hint: "lazarus runs",
    });
  return new LazarusError("RUN_ID_TAKEN", `run ${id} already exists in ${journal.place}`, {
    hint: "omit the run id, or choose another one",
  });
}

/** Why a run cannot be forked at a step: every call of the shared steps must have a result. Pure. */
function forkProblem(
  { step: last, status }: HeadRow,
  entries: readonly Entry[],
  step: number,
): string | undefined {
  if (!Number.isInteger(step) || step < 0) return "a step is an integer, 0 or more";
  if (step > last) return "it has no such step";
  // A later response proves that every call before it had a result.
  if (step < last || step === 0 || status === "completed") return undefined;
  const open = entries.filter(
    (entry) => entry.step === step && entry.kind === "effect" && isOpenState(entry),
  );
  const recorded = entries.filter((entry) => entry.step === step && entry.kind === "effect").length;
  const calls = countCalls(entries.find((entry) => entry.step === step && entry.kind === "response"));
  return open.length > 0 || recorded < calls ? "that step has tool calls without a result" : undefined;
}

function isOpenState({ state }: Entry): boolean {
  return state !== "done" && state !== "failed";
}

/** The tool calls of a response that the client executes, in either of its two shapes. */
function countCalls(response: Entry | undefined): number {
  const { result, parts } = (response?.value ?? {}) as {
    result?: { content: readonly Item[] };
    parts?: readonly Item[];
  };
  return (parts ?? result?.content ?? []).filter(
    ({ type, providerExecuted }) => type === "tool-call" && providerExecuted !== true,
  ).length;
}

interface Item {
  readonly type: string;
  readonly providerExecuted?: boolean;
}

function lastForkableStep(head: HeadRow, entries: readonly Entry[]): number {
  return forkProblem(head, entries, head.step) === undefined ? head.step : Math.max(0, head.step - 1);
}

/** The phase that a fork continues: that of the last input or finished phase that it shares. */
function phaseAt(entries: readonly Entry[], step: number): number {
  const finished = entries.filter((entry) => entry.kind === "phase" && entry.step <= step);
  return finished.length === 0 ? 0 : Math.max(...finished.map(({ call }) => call)) + 1;
}

function isShared({ step, state }: WaitRow, upTo: number): boolean {
  return step <= upTo && state !== "open";
}

/** The effects of the original's later steps that happened, or may have. Pure. */
function happenedAfter(runId: string, entries: readonly Entry[], step: number): Effect[] {
  return entries
    .filter((entry) => entry.kind === "effect" && entry.step > step && entry.class !== "read")
    .filter(({ state }) => state === "done" || state === "started" || state === "unknown")
    .map((entry) => effectOf(runId, entry));
}
