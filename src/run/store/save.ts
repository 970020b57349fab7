// The writes of a run's owner: begin, save, close. Each redacts and seals its content and is one transaction of the
// backend, which refuses it when the lease is stale (INV-4).
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { recordEnds, recordStarts } from "../log/history.ts";
import type { Effect, Json, Lease, RunInfo, StoredError, TranscriptEntry } from "../model/types.ts";
import { ROW_FORMAT, type RunRow, type StepWrite } from "./backend.ts";
import { type StoreContext, timeOf } from "./context.ts";
import { effectRow, messageRows, PLACES, phaseRow } from "./row-codec.ts";
import type { BeginReceipt, RunChange, RunClosing, SaveReceipt } from "./store.ts";
import { writeRefusal } from "./verdict.ts";

/** Fields of a row that every new run has in common. */
export const NEW_RUN = {
  status: "running",
  deaths: 0,
  output: null,
  error: null,
  inputTokens: 0,
  outputTokens: 0,
  format: ROW_FORMAT,
} as const;

/** Adds a run, owned by this process. Throws RUN_ID_TAKEN. */
export async function beginRun(
  context: StoreContext,
  info: RunInfo,
  entries: readonly TranscriptEntry[],
): Promise<BeginReceipt> {
  const { backend, seal, owner } = context;
  const { runId } = info;
  const { rows, redactions } = await messageRows(seal, runId, 0, entries);
  const sealedInfo = await seal.seal(PLACES.info(runId), info);
  const nowMs = timeOf(context);
  const row: RunRow = {
    ...NEW_RUN,
    id: runId,
    agentId: info.agentId,
    parentRunId: info.parentRunId,
    epoch: 1,
    owner,
    leaseUntilMs: nowMs + context.leaseMs,
    seq: rows.length,
    step: 0,
    phase: 0,
    info: sealedInfo.text,
    forkOf: null,
    forkSeq: 0,
    forkStep: null,
    redactions: sum(redactions) + sealedInfo.redactions,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  if (!(await backend.insert(row, rows, []))) {
    throw new LazarusError("RUN_ID_TAKEN", `run ${runId} already exists in ${backend.place}`, {
      hint: `lazarus runs show ${runId}`,
    });
  }
  return { runId, epoch: 1, owner, redactions: row.redactions };
}

/** Writes one change; with `closing`, also ends the run or its lease. */
export async function saveChange(
  context: StoreContext,
  lease: Lease,
  change: RunChange,
  closing?: RunClosing,
): Promise<SaveReceipt> {
  const { backend, seal } = context;
  const { runId, epoch } = lease;
  const { effects = [], phases = [] } = change;
  const { rows: messages, redactions } = await messageRows(seal, runId, change.fromCount, change.messages);
  const redactedInputs = findRedactedInputs(change, effects, redactions);
  const ending = await sealEnding(context, runId, closing);
  const nowMs = timeOf(context);
  const write: StepWrite = {
    runId,
    epoch,
    nowMs,
    leaseUntilMs: closing === undefined ? nowMs + context.leaseMs : 0,
    fromSeq: change.fromCount,
    messages,
    step: change.step,
    phase: change.phase,
    effects: await Promise.all(
      effects.map((effect) => effectRow(seal, effect, redactedInputs.includes(effect))),
    ),
    phases: await Promise.all(phases.map((phase) => phaseRow(seal, runId, phase))),
    redactions: sum(redactions) + ending.redactions,
    inputTokens: change.usage.inputTokens,
    outputTokens: change.usage.outputTokens,
    status: ending.status,
    output: ending.output,
    error: ending.error,
  };
  const ended = effects.map((effect) => ({ ...effect, output: effect.output ?? resultIn(change, effect) }));
  await recordEnds(context, lease, ended);
  crashPoint("run.save.ends-in-history");
  const verdict = await backend.write(write);
  if (verdict !== "written") throw writeRefusal(verdict, lease, backend.place);
  crashPoint("run.save.written");
  recordStarts(context, lease, effects);
  return { redactions: write.redactions, redactedInputs: redactedInputs.map(({ id }) => id) };
}

/**
 * Open effects whose call contained a secret. Only the assistant message of a step holds the inputs of its calls, so a secret
 * in a tool's result does not count.
 */
function findRedactedInputs(
  change: RunChange,
  effects: readonly Effect[],
  redactions: readonly number[],
): Effect[] {
  const redactedSteps = new Set(
    change.messages.flatMap(({ step, message }, i) =>
      message.role === "assistant" && redactions[i]! > 0 ? [step] : [],
    ),
  );
  return effects.filter(
    ({ step, state }) => state !== "done" && state !== "failed" && redactedSteps.has(step),
  );
}

async function sealEnding(
  { seal }: StoreContext,
  runId: string,
  closing: RunClosing | undefined,
): Promise<Pick<StepWrite, "status" | "output" | "error" | "redactions">> {
  if (closing === undefined || closing.status === "interrupted") {
    return { status: "running", output: null, error: null, redactions: 0 };
  }
  let redactions = 0;
  const sealText = async (where: string, value: string | StoredError | null) => {
    if (value === null) return null;
    const sealed = await seal.seal(where, value);
    redactions += sealed.redactions;
    return sealed.text;
  };
  const output = await sealText(PLACES.output(runId), "output" in closing ? closing.output : null);
  const error = await sealText(PLACES.error(runId), closing.error);
  return { status: closing.status, output, error, redactions };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** The result of a call in the messages that are saved with it. */
function resultIn({ messages }: RunChange, effect: Effect): Json {
  for (const { step, message } of messages.toReversed()) {
    if (step !== effect.step || message.role !== "tool") continue;
    const part = message.content.find(
      (each) => each.type === "tool-result" && each.toolCallId === effect.callId,
    );
    if (part?.type === "tool-result" && "value" in part.output) return part.output.value as Json;
  }
  return null;
}
