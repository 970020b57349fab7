// Queues: a run waits until its queue has a slot for it, and its model calls until the rate of the queue allows them. The
// journal decides, so that limits hold across processes. A process that waits for one run also works on the runs ahead of it,
// if they are of the same agent.
import type { HeadRow } from "../journal/journal.ts";
import { ownerName } from "../log/lease.ts";
import { claimName, findHead, type RunLog, timeOf } from "../log/run-log.ts";
import type { Lease } from "../model/types.ts";
import type { LiveRun } from "./live-run.ts";
import type { ModelHooks } from "./model.ts";
import type { RecordedResponse } from "./response.ts";

/** The agent that a worker has. */
export interface QueueWorker {
  readonly agentId: string;
  readonly definition: string;
  readonly onChange: "continue" | "pin" | "refuse";
}

/** A run that this process has claimed from its queue. */
export interface ClaimedRun {
  readonly head: HeadRow;
  readonly lease: Lease;
}

/** How soon a free slot is noticed. */
const POLL_MS = 100;
/** Runs claimed in one transaction. */
const CLAIMS = 8;

type Take = (claimed: ClaimedRun) => void;
const waiters = new WeakMap<object, Map<string, Take>>();

/** The runs that calls in this process wait for. */
function waitersOf({ journal }: RunLog): Map<string, Take> {
  const known = waiters.get(journal) ?? new Map<string, Take>();
  waiters.set(journal, known);
  return known;
}

/** Claims what the queue allows. Runs that a call of this process waits for are passed to it; the others are returned. */
export async function claimFromQueue(log: RunLog, queue: string, worker: QueueWorker): Promise<ClaimedRun[]> {
  const { agentId, definition, onChange } = worker;
  const limits = (await log.journal.readQueues()).get(queue) ?? {};
  const nowMs = timeOf(log);
  const owners = Array.from({ length: CLAIMS }, () => claimName(log.machine));
  const heads = await log.journal.claimQueued({
    ...{ queue, agentId, owners, limits, nowMs, leaseUntilMs: nowMs + log.leaseMs },
    ...(onChange === "continue" ? {} : { definition }),
    worker: `${ownerName(log.machine.processes)}#`,
  });
  return heads
    .filter((head) => {
      const claimed = claimedRun(head);
      const take = waitersOf(log).get(head.id);
      take?.(claimed);
      return take === undefined;
    })
    .map(claimedRun);
}

function claimedRun(head: HeadRow): ClaimedRun {
  return { head, lease: { runId: head.id, epoch: head.epoch, owner: head.owner! } };
}

/** Waits until this process may execute the run; undefined when another process does, or it has ended. */
export async function waitForSlot(
  log: RunLog,
  { id, queue }: HeadRow,
  worker: QueueWorker,
  others: (claimed: ClaimedRun) => void,
): Promise<ClaimedRun | undefined> {
  let mine: ClaimedRun | undefined;
  const waiting = waitersOf(log);
  waiting.set(id, (claimed) => {
    mine = claimed;
  });
  try {
    for (;;) {
      for (const other of await claimFromQueue(log, queue!, worker)) others(other);
      if (mine !== undefined) return mine;
      const head = await findHead(log, id);
      if (head === undefined || !["queued", "waiting"].includes(head.status)) return undefined;
      await log.machine.clock.sleep(POLL_MS);
    }
  } finally {
    waiting.delete(id);
  }
}

/** The queues in which runs of an agent are ready or wait. */
export async function queuesOf(log: RunLog, agentId: string): Promise<string[]> {
  const heads = await log.journal.list({ agentId, statuses: ["queued", "waiting"] });
  return [...new Set(heads.flatMap(({ queue }) => queue ?? []))];
}

/** Makes the model calls of a run wait for the rate of its queue. */
export function rateHooks({ log, queue, stop }: LiveRun): ModelHooks {
  if (queue === null) return {};
  const settings = async () => (await log.journal.readQueues()).get(queue) ?? {};
  return {
    async before() {
      for (;;) {
        const { calls, tokens } = await settings();
        if (calls === undefined && tokens === undefined) return;
        const waitMs = await log.journal.takeRate({
          queue,
          ...(calls === undefined ? {} : { calls: { limit: calls, used: 1 } }),
          // The tokens of a call are known only afterwards: it may start once those of earlier calls are paid off.
          ...(tokens === undefined ? {} : { tokens: { limit: tokens, used: 0 } }),
          nowMs: timeOf(log),
        });
        if (waitMs === 0 || stop.signal.aborted) return;
        await log.machine.clock.sleep(waitMs, stop.signal);
      }
    },
    async after(_, recorded) {
      const { tokens } = await settings();
      const used = tokensOf(recorded);
      if (tokens === undefined || used === 0) return;
      await log.journal.takeRate({ queue, tokens: { limit: tokens, used }, force: true, nowMs: timeOf(log) });
    },
  };
}

/** The tokens that a response has cost. */
function tokensOf(recorded: RecordedResponse): number {
  const usage = (
    "parts" in recorded ? recorded.parts.find(({ type }) => type === "finish")?.usage : recorded.result.usage
  ) as Record<"inputTokens" | "outputTokens", { total?: number } | undefined> | undefined;
  return (usage?.inputTokens?.total ?? 0) + (usage?.outputTokens?.total ?? 0);
}
