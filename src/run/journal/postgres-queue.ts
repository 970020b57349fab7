// Queues and rate limits in PostgreSQL. The caller runs them in a transaction; a lock per queue makes the limits hold across
// all hosts.
import type { HeadRow } from "./journal.ts";
import { toHead } from "./postgres-rows.ts";
import type { PG_JOURNAL_SQL } from "./postgres-schema.ts";
import {
  type Bucket,
  type Candidate,
  chooseQueued,
  type QueueClaim,
  type RateUse,
  takeAll,
} from "./queue.ts";

export type Run = (
  name: keyof typeof PG_JOURNAL_SQL,
  ...values: readonly unknown[]
) => Promise<{ rows: never[]; rowCount: number | null }>;

export async function claimQueued(run: Run, claim: QueueClaim): Promise<HeadRow[]> {
  const { queue, agentId, definition, worker, owners, limits, leaseUntilMs, nowMs } = claim;
  await run("lockQueue", `lazarus queue ${queue}`);
  // The reply to this very claim may have been lost.
  const claimed = (await run("readOwned", queue, owners)).rows.map((row) => toHead(row)!);
  if (claimed.length > 0) return claimed;
  const candidates: readonly Candidate[] = (
    await run("candidates", queue, nowMs, owners.length, agentId ?? null, definition ?? null)
  ).rows;
  if (candidates.length === 0) return [];
  const running: readonly { caller: string | null; model: string | null; owner: string | null }[] = (
    await run("runningInQueue", queue)
  ).rows;
  const load = running.map((each) => ({ ...each, isMine: each.owner?.startsWith(worker) ?? false }));
  const heads: HeadRow[] = [];
  for (const [i, id] of chooseQueued(candidates, load, limits, owners.length).entries()) {
    const [ready]: readonly { epoch: number }[] = (await run("lockReady", id)).rows;
    if (ready === undefined) continue;
    await run("swapLease", id, (ready as { epoch: number }).epoch, owners[i]!, leaseUntilMs, nowMs);
    heads.push(toHead((await run("readHead", id)).rows[0])!);
  }
  return heads;
}

export async function takeRate(run: Run, use: RateUse): Promise<number> {
  await run("lockQueue", `lazarus rate ${use.queue}`);
  const names = [`calls ${use.queue}`, `tokens ${use.queue}`];
  const rows: readonly (Bucket & { name: string })[] = (await run("lockBuckets", names)).rows;
  const { taken, waitMs } = takeAll(use, (name) => rows.find((row) => row.name === name));
  if (waitMs > 0 && !use.force) return waitMs;
  for (const [name, { left, atMs }] of taken) await run("writeBucket", name, left, atMs);
  return 0;
}
