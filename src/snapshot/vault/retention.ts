// Decides which checkpoints to keep: a pure function of the index, the policy and the time. Seven kinds are never removed,
// regardless of the policy: the newest, the newest that is not a safety checkpoint (`latest`), the newest that a drill has
// proven, pinned ones, the one that undoes the latest restore (INV-3), the first baseline (INV-10), and live points with a
// message. The rules of the policy count only the others: live points have their own (live-retention.ts), so that many of
// them do not evict what a user saved on purpose.
import type { CheckpointRef } from "../model/entry.ts";
import type { Retention } from "../settings.ts";
import { isLive, keepLivePoints } from "./live-retention.ts";

export interface RetentionPlan {
  /** In the order of the index, oldest first. */
  readonly keep: readonly CheckpointRef[];
  readonly remove: readonly CheckpointRef[];
  /** For every id, the rules that keep it, or why it is removed. */
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
 * `blobsOf` lists the blobs that a checkpoint needs; only used for `max_bytes`. As in restic, "daily 7" keeps the newest
 * checkpoint of each of the last seven days that have one, so an idle mission loses nothing.
 */
export function retain(
  refs: readonly CheckpointRef[],
  policy: Retention,
  nowMs: number,
  blobsOf?: (ref: CheckpointRef) => readonly SizedBlob[],
): RetentionPlan {
  const protectedRefs = findProtected(refs);
  const reasons = new Map<string, string[]>();
  const addReason = (ref: CheckpointRef, reason: string) => {
    const known = reasons.get(ref.id);
    if (known === undefined) reasons.set(ref.id, [reason]);
    else known.push(reason);
  };
  for (const [ref, why] of protectedRefs) addReason(ref, why);
  for (const [ref, rule] of keepLivePoints(refs, nowMs)) addReason(ref, rule);
  const newestFirst = refs.filter((ref) => !isLive(ref)).reverse();
  for (const ref of newestFirst.slice(0, policy.keep_last)) addReason(ref, "last");
  for (const ref of newestFirst)
    if (nowMs - ref.createdAtMs <= policy.keep_within_seconds * 1000 && policy.keep_within_seconds > 0)
      addReason(ref, "within");
  for (const [rule, count, bucketOf] of [
    ["hourly", policy.keep_hourly, (ms: number) => Math.floor(ms / HOUR_MS)],
    ["daily", policy.keep_daily, (ms: number) => Math.floor(ms / DAY_MS)],
    ["weekly", policy.keep_weekly, (ms: number) => Math.floor((ms + MONDAY_OFFSET_MS) / (7 * DAY_MS))],
  ] as const) {
    for (const ref of newestOfEach(newestFirst, count, bucketOf)) addReason(ref, rule);
  }
  const kept = new Set(refs.filter((ref) => reasons.has(ref.id)));
  for (const ref of refs) if (!kept.has(ref)) reasons.set(ref.id, ["no rule keeps it"]);
  if (policy.max_bytes > 0 && blobsOf !== undefined) {
    for (const ref of overBudget(kept, protectedRefs, policy.max_bytes, blobsOf)) {
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

/** Checkpoints that no policy removes, and why. */
function findProtected(refs: readonly CheckpointRef[]): Map<CheckpointRef, string> {
  const found = new Map<CheckpointRef, string>();
  for (const ref of refs) if (isLive(ref) && ref.message !== null) found.set(ref, "live with a message");
  for (const ref of refs) if (ref.pinned) found.set(ref, "pinned");
  const baseline = refs.find((ref) => ref.reason === "baseline");
  if (baseline !== undefined) found.set(baseline, "baseline");
  const undo = refs.findLast((ref) => ref.beforeRestoreOf !== null);
  if (undo !== undefined) found.set(undo, "undoes the latest restore");
  const proven = refs.findLast((ref) => ref.provenAtMs !== null);
  if (proven !== undefined) found.set(proven, "newest proven");
  const latest = refs.findLast((ref) => ref.reason !== "pre-restore");
  if (latest !== undefined) found.set(latest, "latest");
  const newest = refs.at(-1);
  if (newest !== undefined) found.set(newest, "newest");
  return found;
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

/** The oldest checkpoints to remove until the rest fits. A shared blob is freed with its last user. */
function overBudget(
  kept: ReadonlySet<CheckpointRef>,
  protectedRefs: ReadonlyMap<CheckpointRef, string>,
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
  const removed: CheckpointRef[] = [];
  for (const ref of kept) {
    if (total <= maxBytes) break;
    if (protectedRefs.has(ref)) continue;
    removed.push(ref);
    for (const { digest, size } of blobsOf(ref)) {
      const count = users.get(digest)! - 1;
      users.set(digest, count);
      if (count === 0) total -= size;
    }
  }
  return removed;
}
