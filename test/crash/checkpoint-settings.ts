// The settings that the victim and its judge share. In a file of its own, since the judge brings Vitest along, which takes
// a victim longer to load than everything else.

/** Small, so that pruning joins in. */
export const CRASH_DOCUMENT = {
  retention: { keep_last: 8, keep_hourly: 0, keep_daily: 0, keep_weekly: 0, keep_within_seconds: 0 },
};
