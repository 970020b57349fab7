// Runs as lists show them, without their content: readable without a key.
import type { HeadRow, JournalQuery, JournalStatus, StoredEntry, WaitRow } from "../journal/journal.ts";
import type { RunLog } from "../log/run-log.ts";

/** One run in a list. */
export interface RunSummary {
  readonly runId: string;
  readonly agentId: string;
  readonly status: JournalStatus;
  readonly step: number;
  readonly phase: number;
  readonly parentRunId: string | null;
  readonly forkOf: string | null;
  readonly forkStep: number | null;
  readonly thread: string | null;
  readonly caller: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number };
  /** When a waiting run is due at the latest; null: only an answer or a message wakes it. */
  readonly wakeMs: number | null;
  /** When it was asked to cancel. */
  readonly cancelMs: number | null;
  /** What a waiting run waits for. */
  readonly waitsFor: readonly string[];
  /** Number of effects that may or may not have happened. */
  readonly unknownEffects: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** The runs that match, newest first. */
export async function listRuns(log: RunLog, query: JournalQuery = {}): Promise<RunSummary[]> {
  const summaries: RunSummary[] = [];
  for (const head of await log.journal.list(query)) summaries.push(await summarize(log, head));
  return summaries;
}

/** One run in short. Only a run that is not completed costs further queries. */
export async function summarize({ journal }: RunLog, head: HeadRow): Promise<RunSummary> {
  const { id: runId, agentId, status, step, phase, parentRunId, forkOf, forkStep } = head;
  const { thread, caller, queue, priority, inputTokens, outputTokens, wakeMs, cancelMs } = head;
  const waits = status === "waiting" ? await journal.readWaits(runId) : [];
  const entries = status === "completed" ? [] : await journal.readStates(runId);
  return {
    ...{
      runId,
      agentId,
      status,
      step,
      phase,
      parentRunId,
      forkOf,
      forkStep,
      thread,
      caller,
      queue,
      priority,
    },
    usage: { inputTokens, outputTokens },
    ...{ wakeMs: status === "waiting" ? wakeMs : null, cancelMs },
    waitsFor: waits.filter(({ state }) => state === "open").map(describeWait),
    unknownEffects: entries.filter(hasUnknownOutcome).length,
    createdAtMs: head.createdAtMs,
    updatedAtMs: head.updatedAtMs,
  };
}

/** A wait in words: `approval of pay`, `message go or stop`, `sleep`, `child run r.1.0.0`. */
export function describeWait({ kind, names }: Pick<WaitRow, "kind" | "names">): string {
  if (kind === "approval") return `approval of ${names[0]}`;
  if (kind === "child") return `child run ${names[0]}`;
  return kind === "signal" ? `message ${names.join(" or ")}` : "sleep";
}

/** Whether an effect may or may not have happened. */
export function hasUnknownOutcome({
  kind,
  state,
  class: effectClass,
}: Pick<StoredEntry, "kind" | "state" | "class">): boolean {
  return kind === "effect" && (state === "unknown" || state === "started") && effectClass !== "read";
}
