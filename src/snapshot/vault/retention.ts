// Which checkpoints stay and which go: a pure function of the index, the policy and the time. Whatever the policy says,
// five are never removed: the newest, the newest that is no safety checkpoint (what `latest` means), the newest that a drill
// has proven, every pinned one, and the one that undoes the latest restore (INV-3).
import type { CheckpointRef } from "../model/entry.ts";
import type { Retention } from "../settings.ts";

export interface RetentionPlan {
  /** In the order of the index, oldest first. */
  readonly keep: readonly CheckpointRef[];
  readonly remove: readonly CheckpointRef[];
  /** For every id, what keeps it, or why it goes. */
  readonly reasons: ReadonlyMap<string, readonly string[]>;
}

export interface SizedBlob {
  readonly digest: string;
  readonly size: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The epoch began on a Thursday; weeks begin on Monday. */
const MONDAY_OFFSET_MS = 3 * DAY_MS;

/**
 * `blobsOf` says what a checkpoint reaches; needed only for `max_bytes`. Like restic, "daily 7" keeps the newest of
 * each of the seven latest days that have any, so that a mission that rests loses nothing.
 */
export function retain(
  refs: readonly CheckpointRef[],
  policy: Retention,
  nowMs: number,
  blobsOf?: (ref: CheckpointRef) => readonly SizedBlob[],
): RetentionPlan {
  const guarded = guard(refs);
  const reasons = new Map<string, string[]>();
  const say = (ref: CheckpointRef, why: string) => {
    const said = reasons.get(ref.id);
    if (said === undefined) reasons.set(ref.id, [why]);
    else said.push(why);
  };
  for (const [ref, why] of guarded) say(ref, why);
  const newestFirst = [...refs].reverse();
  for (const ref of newestFirst.slice(0, policy.keep_last)) say(ref, "last");
  for (const ref of newestFirst)
    if (nowMs - ref.createdAtMs <= policy.keep_within_seconds * 1000 && policy.keep_within_seconds > 0)
      say(ref, "within");
  for (const [why, count, bucketOf] of [
    ["hourly", policy.keep_hourly, (ms: number) => Math.floor(ms / HOUR_MS)],
    ["daily", policy.keep_daily, (ms: number) => Math.floor(ms / DAY_MS)],
    ["weekly", policy.keep_weekly, (ms: number) => Math.floor((ms + MONDAY_OFFSET_MS) / (7 * DAY_MS))],
  ] as const) {
    for (const ref of newestOfEach(newestFirst, count, bucketOf)) say(ref, why);
  }
  const kept = new Set(refs.filter((ref) => reasons.has(ref.id)));
  for (const ref of refs) if (!kept.has(ref)) reasons.set(ref.id, ["no rule keeps it"]);
  if (policy.max_bytes > 0 && blobsOf !== undefined) {
    for (const ref of overBudget(kept, guarded, policy.max_bytes, blobsOf)) {
      kept.delete(ref);
      reasons.set(ref.id, [`the vault holds more than ${policy.max_bytes} bytes`]);
    }
  }
  return {
    keep: refs.filter((ref) => kept.has(ref)),
    remove: refs.filter((ref) => !kept.has(ref)),
    reasons,
  };
}

/** What no policy removes, and why. */
function guard(refs: readonly CheckpointRef[]): Map<CheckpointRef, string> {
  const guarded = new Map<CheckpointRef, string>();
  for (const ref of refs) if (ref.pinned) guarded.set(ref, "pinned");
  const undo = refs.findLast((ref) => ref.beforeRestoreOf !== null);
  if (undo !== undefined) guarded.set(undo, "undoes the latest restore");
  const proven = refs.findLast((ref) => ref.provenAtMs !== null);
  if (proven !== undefined) guarded.set(proven, "newest proven");
  const latest = refs.findLast((ref) => ref.reason !== "pre-restore");
  if (latest !== undefined) guarded.set(latest, "latest");
  const newest = refs.at(-1);
  if (newest !== undefined) guarded.set(newest, "newest");
  return guarded;
}

function newestOfEach(
  newestFirst: readonly CheckpointRef[],
  count: number,
  bucketOf: (ms: number) => number,
): CheckpointRef[] {
  const found = new Map<number, CheckpointRef>();
  for (const ref of newestFirst) {
    if (found.size >= count) break;
    const bucket = bucketOf(ref.createdAtMs);
    if (!found.has(bucket)) found.set(bucket, ref);
  }
  return [...found.values()];
}

/** The oldest that must go until what is left fits. Blobs are shared: one is freed when its last user goes. */
function overBudget(
  kept: ReadonlySet<CheckpointRef>,
  guarded: ReadonlyMap<CheckpointRef, string>,
  maxBytes: number,
  blobsOf: (ref: CheckpointRef) => readonly SizedBlob[],
): CheckpointRef[] {
  const users = new Map<string, number>();
  let total = 0;
  for (const ref of kept) {
    for (const { digest, size } of blobsOf(ref)) {
      const count = users.get(digest) ?? 0;
      if (count === 0) total += size;
      users.set(digest, count + 1);
    }
  }
  const going: CheckpointRef[] = [];
  for (const ref of kept) {
    if (total <= maxBytes) break;
    if (guarded.has(ref)) continue;
    going.push(ref);
    for (const { digest, size } of blobsOf(ref)) {
      const count = users.get(digest)! - 1;
      users.set(digest, count);
      if (count === 0) total -= size;
    }
  }
  return going;
}
