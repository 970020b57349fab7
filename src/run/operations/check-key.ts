// Refuses to write to a run with a key other than the one it is encrypted with: no key could then read all of it.
import type { HeadRow } from "../journal/journal.ts";
import { infoOf, type RunLog } from "../log/run-log.ts";

/** Throws RUN_KEY_WRONG or RUN_PLAINTEXT when this log cannot read the run. */
export function checkKey(log: RunLog, head: HeadRow): void {
  infoOf(log, head);
}
