// Cancels a run and its child runs. The owner is notified, in any process, and ends the run after a grace period; a run
// without an owner is ended here. The outcome of an effect in progress becomes unknown and is reported (INV-5).
import { isEnded } from "../journal/head.ts";
import type { HeadRow, JournalStatus } from "../journal/journal.ts";
import { type Entry, effectOf } from "../log/entry.ts";
import {
  claimRun,
  findHead,
  type RunLog,
  readEntries,
  requireHead,
  timeOf,
  writeRun,
} from "../log/run-log.ts";
import { decideOutcome } from "../model/outcome.ts";
import { RunStopped } from "../model/stop.ts";

/** One run after a request to cancel it. */
export interface CancelledRun {
  readonly runId: string;
  /** Still open when its owner has not ended it yet. */
  readonly status: JournalStatus;
  /** Effects that were in progress: they may or may not have happened. */
  readonly unknownEffects: readonly string[];
}

/** The run and its descendants that had not ended; empty when it had. Waits up to `waitMs` for owners to end theirs. */
export async function cancelRun(log: RunLog, runId: string, waitMs = 0): Promise<CancelledRun[]> {
  const asked = await requestCancel(log, runId, new Set());
  for (const id of asked) await endUnowned(log, id);
  const cancelled: CancelledRun[] = [];
  const untilMs = log.machine.clock.monotonicMs() + waitMs;
  for (const id of asked) cancelled.push(await outcomeOf(log, id, untilMs));
  return cancelled;
}

/** Parents first, so that none of them starts another child. In a damaged store, a run may be its own descendant. */
async function requestCancel(log: RunLog, runId: string, seen: Set<string>): Promise<string[]> {
  if (seen.has(runId)) return [];
  seen.add(runId);
  const isOpen = await log.journal.requestCancel(runId, timeOf(log));
  const asked = isOpen ? [runId] : [];
  for (const { id } of await log.journal.list({ parentRunId: runId }))
    asked.push(...(await requestCancel(log, id, seen)));
  return asked;
}

async function endUnowned(log: RunLog, runId: string): Promise<void> {
  const head = await findHead(log, runId);
  const lease = head && !isEnded(head.status) ? await claimRun(log, head, ["needs-human"]) : undefined;
  if (head === undefined || lease === undefined) return;
  const stop = new RunStopped("cancelled", "the run was cancelled");
  const { closing } = decideOutcome({ kind: "threw", error: stop }, runId);
  const inProgress = (await readEntries(log, runId)).filter(isInProgress);
  await writeRun(log, lease, {
    seq: head.seq + 1,
    sync: "full",
    entries: inProgress.map((entry) => ({
      ...entry,
      state: "unknown",
      value: { ...(entry.value as object), error: "the run was cancelled" },
    })),
    head: { status: "cancelled", error: closing !== undefined && "error" in closing ? closing.error : null },
    release: true,
  });
}

/** What was in progress when its process died may or may not have happened. */
function isInProgress({ kind, state, class: effectClass }: Entry): boolean {
  return kind === "effect" && state === "started" && effectClass !== "read";
}

async function outcomeOf(log: RunLog, runId: string, untilMs: number): Promise<CancelledRun> {
  const { clock } = log.machine;
  let head: HeadRow = await requireHead(log, runId);
  while (!isEnded(head.status) && clock.monotonicMs() < untilMs) {
    const late = new AbortController();
    const timer = clock.sleep(untilMs - clock.monotonicMs(), late.signal).then(() => late.abort());
    await log.journal.changed(runId, head.seq, late.signal);
    late.abort();
    await timer;
    head = await requireHead(log, runId);
  }
  const entries = await readEntries(log, runId);
  const unknown = entries.filter(({ kind, state }) => kind === "effect" && state === "unknown");
  return { runId, status: head.status, unknownEffects: unknown.map((entry) => effectOf(runId, entry).id) };
}
