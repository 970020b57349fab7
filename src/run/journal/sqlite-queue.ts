// Queues, rate limits and ticks in SQLite. The caller runs them in a transaction.
import type { Journal } from "./journal.ts";
import {
  type Bucket,
  type Candidate,
  chooseQueued,
  type QueueClaim,
  type QueueSettings,
  type RateUse,
  takeAll,
} from "./queue.ts";
import { findHead, type Statements, toHead } from "./sqlite-rows.ts";

export function claimQueued(
  sql: Statements,
  { queue, agentId, definition, worker, owners, limits, leaseUntilMs, nowMs }: QueueClaim,
): Awaited<ReturnType<Journal["claimQueued"]>> {
  const count = owners.length;
  const candidates = sql("candidates").all({
    queue,
    agentId: agentId ?? null,
    definition: definition ?? null,
    nowMs,
    count,
  }) as unknown as Candidate[];
  if (candidates.length === 0) return [];
  const running = sql("runningInQueue").all({ queue }) as unknown as {
    readonly caller: string | null;
    readonly model: string | null;
    readonly owner: string | null;
  }[];
  const load = running.map((run) => ({ ...run, isMine: run.owner?.startsWith(worker) ?? false }));
  return chooseQueued(candidates, load, limits, count).map((id, i) => {
    const { key } = findHead(sql, id)!;
    sql("swapLease").run({ key, owner: owners[i]!, leaseUntilMs, nowMs });
    return toHead(findHead(sql, id)!);
  });
}

export function readQueues(sql: Statements): ReadonlyMap<string, QueueSettings> {
  const rows = sql("readQueues").all() as unknown as { name: string; settings: string }[];
  return new Map(rows.map(({ name, settings }) => [name, JSON.parse(settings)]));
}

export function writeQueue(sql: Statements, queue: string, settings: QueueSettings | null): void {
  if (settings === null) sql("removeQueue").run(queue);
  else sql("writeQueue").run({ queue, settings: JSON.stringify(settings) });
}

export function takeRate(sql: Statements, use: RateUse): number {
  const find = (name: string) => sql("readBucket").get(name) as unknown as Bucket | undefined;
  const { taken, waitMs } = takeAll(use, find);
  if (waitMs > 0 && !use.force) return waitMs;
  for (const [name, { left, atMs }] of taken) sql("writeBucket").run({ name, left, atMs });
  return 0;
}
