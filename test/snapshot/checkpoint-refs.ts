// Entries of a vault's index, for tests of what is decided from them.
import type { CheckpointRef } from "../../src/snapshot/model/entry.ts";
import type { Retention } from "../../src/snapshot/settings.ts";

/** A manual checkpoint; `extra` is what is different. */
export function checkpointRef(
  id: string,
  createdAtMs: number,
  extra: Partial<CheckpointRef> = {},
): CheckpointRef {
  return {
    id,
    manifest: `sha256:${id}`,
    manifestSize: 1,
    createdAtMs,
    reason: "manual",
    message: null,
    parent: null,
    pinned: false,
    provenAtMs: null,
    beforeRestoreOf: null,
    ...extra,
  };
}

/** A policy that keeps nothing by its own rules. */
export const KEEP_NOTHING: Retention = {
  keep_last: 0,
  keep_hourly: 0,
  keep_daily: 0,
  keep_weekly: 0,
  keep_within_seconds: 0,
  max_bytes: 0,
};
