// Forks a run: the new one shares the messages up to a step and continues from there. Possible after any step whose calls
// all have results.
import { LazarusError } from "../../platform/errors.ts";
import { createRunId } from "../model/run-id.ts";
import { danglingCalls } from "../model/transcript.ts";
import type { RunHead, TranscriptEntry } from "../model/types.ts";
import type { PhaseRow, RunRow } from "./backend.ts";
import { requireRun, type StoreContext, timeOf, unknownRun } from "./context.ts";
import { readTranscript } from "./load.ts";
import { checkFormat, headOf, PLACES, phaseOf, phaseRow, runInfoOf } from "./row-codec.ts";
import { NEW_RUN } from "./save.ts";

/** Where to cut the transcript, or why it cannot be cut there. */
export type ForkPoint =
  | { readonly ok: true; readonly count: number; readonly phase: number }
  | { readonly ok: false; readonly reason: string };

/** How many messages a fork after `step` shares, and the phase it continues. Step 0 is the input alone. Pure. */
export function findForkPoint(entries: readonly TranscriptEntry[], step: number): ForkPoint {
  if (!Number.isInteger(step) || step < 0) return { ok: false, reason: "a step is an integer, 0 or more" };
  const last = entries.findLastIndex((entry) => entry.step === step);
  if (last < 0) return { ok: false, reason: "it has no such step" };
  const shared = entries.slice(0, last + 1);
  const phase = Math.max(0, shared.at(-1)!.phase);
  if (danglingCalls(shared.filter((entry) => entry.phase === phase)).length > 0) {
    return { ok: false, reason: "that step has tool calls without a result" };
  }
  return { ok: true, count: shared.length, phase };
}

/** The last step that a fork can be made at, -1 if there is none. Pure. */
export function lastForkableStep(entries: readonly TranscriptEntry[]): number {
  const steps = new Set(entries.map(({ step }) => step));
  return Math.max(-1, ...[...steps].filter((step) => findForkPoint(entries, step).ok));
}

/** Adds an interrupted run that shares the first `step` steps of another. */
export async function forkRun(context: StoreContext, runId: string, step: number): Promise<RunHead> {
  const { backend, machine, seal } = context;
  const row = await requireRun(context, runId);
  checkFormat(row);
  const entries = await readTranscript(context, row);
  const point = findForkPoint(entries, step);
  if (!point.ok) {
    const last = lastForkableStep(entries);
    throw new LazarusError(
      "RUN_STEP_UNKNOWN",
      `run ${runId} cannot be forked at step ${step}: ${point.reason}`,
      { hint: last < 0 ? `lazarus runs show ${runId}` : `its last complete step is ${last}: --at ${last}` },
    );
  }
  const nowMs = timeOf(context);
  const id = createRunId(machine, nowMs);
  const info = { ...runInfoOf(seal, row), runId: id, parentRunId: runId };
  const phases: PhaseRow[] = [];
  for (const phase of await backend.readPhases(runId)) {
    if (phase.position < point.phase) phases.push(await phaseRow(seal, id, phaseOf(seal, runId, phase)));
  }
  const fork: RunRow = {
    ...NEW_RUN,
    id,
    agentId: row.agentId,
    parentRunId: runId,
    epoch: 0,
    owner: null,
    leaseUntilMs: 0,
    seq: point.count,
    step,
    phase: point.phase,
    info: (await seal.seal(PLACES.info(id), info)).text,
    forkOf: runId,
    forkSeq: point.count,
    forkStep: step,
    redactions: 0,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  if (!(await backend.insert(fork, [], phases))) throw unknownRun(runId, backend.place);
  return headOf(fork);
}
