// A store is written with the key that it is read with: text without encryption in an encrypted store could not be read.
import type { HeadRow } from "../journal/journal.ts";
import { infoOf, type RunLog } from "../log/run-log.ts";

/** Throws RUN_KEY_WRONG or RUN_PLAINTEXT when this log cannot read the run. */
export function checkKey(log: RunLog, head: HeadRow): void {
  infoOf(log, head);
}
