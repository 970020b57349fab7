// Decides which live points to keep: all of the last hour, then fewer with age. Pure. Buckets are aligned and nested (10
// minutes, hours, days), and leave a tier as a whole: so thinning out step by step keeps the same points as doing it once,
// and a mission with a live point every few seconds has something to remove only every 10 minutes.
import type { CheckpointRef } from "../model/entry.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

interface Tier {
  readonly rule: string;
  /** Keeps points up to this age, and the rest of the bucket in which that age ends. */
  readonly maxAgeMs: number;
  /** Keeps the newest point of each span of this length; 0 keeps all. */
  readonly bucketMs: number;
}

/** From young to old. */
const TIERS: readonly Tier[] = [
  { rule: "live: last hour", maxAgeMs: HOUR_MS, bucketMs: 0 },
  { rule: "live: every 10 minutes", maxAgeMs: DAY_MS, bucketMs: 10 * MINUTE_MS },
  { rule: "live: hourly", maxAgeMs: 7 * DAY_MS, bucketMs: HOUR_MS },
  { rule: "live: daily", maxAgeMs: 30 * DAY_MS, bucketMs: DAY_MS },
];

/** Whether the pit took this checkpoint while the agent worked. */
export function isLive(ref: CheckpointRef): boolean {
  return ref.reason === "live";
}

/** Whether a live point has outlived the hour in which all are kept, or was marked: most others are soon removed. */
export function isLongLived(ref: CheckpointRef, nowMs: number): boolean {
  const isMarked = ref.pinned || ref.message !== null || ref.provenAtMs !== null;
  return isMarked || nowMs - ref.createdAtMs > HOUR_MS;
}

/** The live points to keep, and the rule that keeps each; `refs` are in the order of the index, oldest first. */
export function keepLivePoints(refs: readonly CheckpointRef[], nowMs: number): Map<CheckpointRef, string> {
  const kept = new Map<CheckpointRef, string>();
  const taken = new Set<string>();
  const tiers = TIERS.map((tier, i) => ({ ...tier, sinceMs: startOf(tier, TIERS[i + 1] ?? tier, nowMs) }));
  for (const ref of refs.filter(isLive).reverse()) {
    const tier = tiers.find(({ sinceMs }) => ref.createdAtMs >= sinceMs);
    if (tier === undefined) continue;
    if (tier.bucketMs > 0) {
      const bucket = `${tier.bucketMs} ${Math.floor(ref.createdAtMs / tier.bucketMs)}`;
      if (taken.has(bucket)) continue;
      taken.add(bucket);
    }
    kept.set(ref, tier.rule);
  }
  return kept;
}

/** When a tier begins: at the start of a bucket of the next one, so that no bucket is split between two. */
function startOf({ maxAgeMs }: Tier, next: Tier, nowMs: number): number {
  return Math.floor((nowMs - maxAgeMs) / next.bucketMs) * next.bucketMs;
}
