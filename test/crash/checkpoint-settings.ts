// Settings shared by the killed process and the test. A separate file, because the test imports Vitest, which would slow
// down the start of the process.

/** Small, so that pruning takes place. */
export const CRASH_DOCUMENT = {
  retention: { keep_last: 8, keep_hourly: 0, keep_daily: 0, keep_weekly: 0, keep_within_seconds: 0 },
};
