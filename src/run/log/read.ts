// Reads runs for people and other modules: heads, whole records, and the transcript as messages. What a run needs to continue
// is in its entries; the transcript is made from them.
import type { ModelMessage } from "ai";
import { CLAIMABLE } from "../journal/head.ts";
import { type HeadRow, JOURNAL_FORMAT, type JournalQuery } from "../journal/journal.ts";
import type {
  Effect,
  InterruptedRun,
  PhaseOutput,
  RunHead,
  RunInfo,
  RunRecord,
  RunStatus,
  StoredError,
  TranscriptEntry,
} from "../model/types.ts";
import { damagedRun } from "./check.ts";
import { type Entry, effectOf, HEAD_PLACES } from "./entry.ts";
import {
  findHead,
  infoOf,
  isHeld,
  loadRun,
  type RunLog,
  readEntries,
  requireHead,
  timeOf,
} from "./run-log.ts";
import { transcriptOf } from "./transcript.ts";

/** The head of a run, from its row. */
export function headOf(row: HeadRow): RunHead {
  return {
    runId: row.id,
    agentId: row.agentId,
    parentRunId: row.parentRunId,
    status: row.status as RunStatus,
    step: row.step,
    phase: row.phase,
    messageCount: row.messages,
    epoch: row.epoch,
    owner: row.owner,
    leaseUntilMs: row.leaseUntilMs,
    deaths: row.deaths,
    forkOf: row.forkOf,
    forkStep: row.forkStep,
    redactions: row.redactions,
    usage: { inputTokens: row.inputTokens, outputTokens: row.outputTokens },
    createdAtMs: row.createdAtMs,
    updatedAtMs: row.updatedAtMs,
  };
}

/** The head of a run, or undefined. A run of a newer version has one too. */
export async function readHead({ journal }: RunLog, runId: string): Promise<RunHead | undefined> {
  const row = await journal.readHead(runId);
  return row === undefined || row.status === "stub" ? undefined : headOf(row);
}

/** Heads of runs, newest first. */
export async function listHeads({ journal }: RunLog, query: JournalQuery = {}): Promise<RunHead[]> {
  return (await journal.list(query)).map(headOf);
}

/** A whole run, or undefined. Throws RUN_NEWER, RUN_DAMAGED or RUN_KEY_WRONG. */
export async function readRecord(log: RunLog, runId: string): Promise<RunRecord | undefined> {
  const loaded = await loadRun(log, runId);
  if (loaded === undefined) return undefined;
  const { head, entries } = loaded;
  const transcript = transcriptOf(entries);
  return {
    head: headOf(head),
    info: readInfo(log, head, transcript),
    transcript,
    phases: phasesOf(entries),
    effects: effectsOf(runId, entries),
    output: head.output === null ? null : String(log.seal.open(HEAD_PLACES.output(runId), head.output)),
    error: errorOf(log, head),
  };
}

/** Why a run has ended or stopped; null for an earlier stop after which it continued. */
export function errorOf({ seal }: RunLog, { id, status, error }: HeadRow): StoredError | null {
  if (error === null || status === "completed" || CLAIMABLE.includes(status)) return null;
  return seal.open(HEAD_PLACES.error(id), error) as StoredError;
}

const NO_INFO = {
  ...{ agentName: "", callerId: null, channelId: null, guildId: null, parentRunId: null, prompt: "" },
  ...{ modelTier: null, inputs: null, startedAtMs: 0, maxIterations: 0 },
};

/** The info of a run. That of a durable agent has fewer fields. */
export function readInfo(log: RunLog, head: HeadRow, transcript: readonly TranscriptEntry[] = []): RunInfo {
  const info = infoOf(log, head) as Partial<RunInfo> | null;
  if (typeof info !== "object" || info?.runId !== head.id)
    throw damagedRun(head.id, "has the info of another run");
  const prompt =
    info.prompt ??
    excerpt(transcript.map(({ message }) => textOf(message)).find((text) => text !== "") ?? "");
  return { ...NO_INFO, agentId: head.agentId, ...info, runId: head.id, prompt };
}

/** The ledger of a run, in the order of its calls. */
export async function readEffects(log: RunLog, runId: string): Promise<Effect[]> {
  if ((await findHead(log, runId)) === undefined) return [];
  return effectsOf(runId, await readEntries(log, runId));
}

/** The transcript, from message `fromCount` on. Throws RUN_UNKNOWN. */
export async function readTranscript(log: RunLog, runId: string, fromCount = 0): Promise<TranscriptEntry[]> {
  await requireHead(log, runId);
  const loaded = await loadRun(log, runId);
  return transcriptOf(loaded?.entries ?? []).slice(fromCount);
}

/** Runs that can be continued: interrupted ones and those that are due. Oldest first. */
export async function listInterrupted(log: RunLog): Promise<InterruptedRun[]> {
  const running = await log.journal.list({ statuses: ["running"] });
  const due = await log.journal.list({ statuses: ["waiting"], dueMs: timeOf(log) });
  return [...running, ...due]
    .filter((row) => !isHeld(log, row))
    .reverse()
    .map((row) => ({ head: headOf(row), blocked: newerFormat(row) }));
}

/** Why this version cannot read a run; null when it can. */
function newerFormat({ id, format }: HeadRow): string | null {
  if (format <= JOURNAL_FORMAT) return null;
  return `run ${id} has format ${format}; this version of Lazarus reads formats up to ${JOURNAL_FORMAT}`;
}

/** The outputs of the finished phases. */
export function phasesOf(entries: readonly Entry[]): PhaseOutput[] {
  return entries
    .filter(({ kind }) => kind === "phase")
    .sort((a, b) => a.call - b.call)
    .map(({ call, value }) => {
      const { name, output, fellBack } = value as Omit<PhaseOutput, "position">;
      return { position: call, name, output, fellBack: fellBack === true };
    });
}

/** Effects of steps that a fork shares are those of its ancestor. */
function effectsOf(runId: string, entries: readonly Entry[]): Effect[] {
  const redacted = new Set(
    entries.filter((entry) => entry.kind === "response" && entry.redacted).map(({ step }) => step),
  );
  return entries
    .filter(({ kind }) => kind === "effect")
    .sort((a, b) => a.step - b.step || a.call - b.call)
    .map((entry) =>
      effectOf(entry.holder ?? runId, {
        ...entry,
        redacted: entry.redacted || redacted.has(entry.step),
      }),
    );
}

/** The text of a message, without calls, files and reasoning. */
export function textOf({ content }: ModelMessage): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

const PROMPT_LENGTH = 200;

/** Cuts at a word boundary: the redaction rules would not recognize half a secret. */
export function excerpt(text: string): string {
  if (text.length <= PROMPT_LENGTH) return text;
  return /\s/.test(text[PROMPT_LENGTH]!)
    ? text.slice(0, PROMPT_LENGTH)
    : text.slice(0, PROMPT_LENGTH).replace(/\S+$/, "");
}
