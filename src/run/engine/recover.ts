// Continues the runs of an agent that no process executes: interrupted ones, and those that are due or answered. A run
// that kills its process every time is skipped, as is one that belongs to another version of a pinned agent.
import type { HeadRow } from "../journal/journal.ts";
import { DEFAULT_DEATHS } from "../log/lease.ts";
import { findHead, isHeld, type RunLog, timeOf } from "../log/run-log.ts";
import { thrownText } from "../model/thrown.ts";
import type { Lease } from "../model/types.ts";
import type { RunKind } from "./open-run.ts";
import { type ClaimedRun, claimFromQueue, queuesOf } from "./queue.ts";
import { activeRuns, type RunOutcome } from "./session.ts";

/** The result for one run. */
export interface RecoveredRun {
  readonly runId: string;
  readonly status: RunOutcome["status"] | "skipped";
  readonly reason?: string;
}

/** Continues all runs of one kind that can be continued. */
export async function recoverRuns(
  log: RunLog,
  kind: RunKind,
  resume: (head: HeadRow) => Promise<RunOutcome["status"]>,
): Promise<RecoveredRun[]> {
  const { agentId } = kind;
  const interrupted = await log.journal.list({ agentId, statuses: ["running"] });
  // Those of a queue need a slot: `recoverQueues`.
  const due = (await log.journal.list({ agentId, statuses: ["waiting"], dueMs: timeOf(log) })).filter(
    ({ queue }) => queue === null,
  );
  const recovered: RecoveredRun[] = [];
  for (const head of [...interrupted, ...due].reverse()) {
    if (activeRuns(log).has(head.id) || isHeld(log, head) || (await hasOpenParent(log, head))) continue;
    const reason = skipReason(head, kind);
    recovered.push(
      reason === undefined
        ? await recoverOne(log, head, resume)
        : { runId: head.id, status: "skipped", reason },
    );
  }
  return recovered;
}

/** Executes runs of queues, as many at a time as their limits allow, until none is ready. */
export async function recoverQueues(
  log: RunLog,
  kind: RunKind,
  resume: (head: HeadRow, lease: Lease) => Promise<RunOutcome["status"]>,
): Promise<RecoveredRun[]> {
  const recovered: RecoveredRun[] = [];
  const work = async ({ head, lease }: ClaimedRun): Promise<void> => {
    recovered.push(await recoverOne(log, head, () => resume(head, lease)));
    await drain(head.queue!);
  };
  // A run that has ended makes room for the next one.
  const drain = async (queue: string): Promise<void> => {
    await Promise.all((await claimFromQueue(log, queue, kind)).map(work));
  };
  await Promise.all((await queuesOf(log, kind.agentId)).map(drain));
  return recovered;
}

async function recoverOne(
  log: RunLog,
  head: HeadRow,
  resume: (head: HeadRow) => Promise<RunOutcome["status"]>,
): Promise<RecoveredRun> {
  const runId = head.id;
  try {
    return { runId, status: await resume(head) };
  } catch (error) {
    const now = await findHead(log, runId);
    return { runId, status: now?.status ?? "skipped", reason: thrownText(error) };
  }
}

function skipReason(head: HeadRow, { definition, onChange }: RunKind): string | undefined {
  if (head.deaths >= DEFAULT_DEATHS) {
    return `it was resumed ${head.deaths} times without getting past step ${head.step}: its process dies there; when that is fixed: lazarus runs retry ${head.id}`;
  }
  if (onChange !== "continue" && head.definition !== null && head.definition !== definition) {
    return "another version of the agent started it";
  }
  return undefined;
}

/** A child run is continued by the tool that started it. */
async function hasOpenParent(log: RunLog, { parentRunId }: HeadRow): Promise<boolean> {
  const parent = parentRunId === null ? undefined : await findHead(log, parentRunId);
  return parent !== undefined && ["running", "queued", "waiting", "needs-human"].includes(parent.status);
}

const POLL_MS = 1000;

/** Works at start-up and every second, until it is stopped or the process ends. Never keeps the process alive. */
export function startWorker(log: RunLog, work: () => Promise<unknown>): () => void {
  let busy = false;
  const poll = async () => {
    if (busy) return;
    busy = true;
    try {
      await work();
    } catch {
      // The store is unreachable or closed; the next attempt may reach it.
    } finally {
      busy = false;
    }
  };
  if (isChecking()) return () => {};
  void Promise.resolve().then(poll);
  const timer = setInterval(() => void poll(), Math.min(POLL_MS, log.leaseMs)).unref();
  return () => clearInterval(timer);
}

/** Set while `lazarus runs check` loads the module of an agent, which must not act. */
export const CHECKING = Symbol.for("lazarus.runs.checking");

function isChecking(): boolean {
  return (globalThis as { [CHECKING]?: boolean })[CHECKING] === true;
}
