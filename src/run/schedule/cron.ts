// The cron grammar, which is croner's. Pure: the time is handed in.
import { Cron } from "croner";
import { LazarusError } from "../../platform/errors.ts";

/**
 * When a cron expression fires next after `nowMs`; null when never again. `timezone` is an IANA name, UTC unless told.
 * Throws USAGE for an expression that cannot be read.
 */
export function nextCronTime(expression: string, nowMs: number, timezone = "UTC"): number | null {
  try {
    const next = new Cron(expression, { timezone, paused: true }).nextRun(new Date(nowMs));
    return next === null ? null : next.getTime();
  } catch (error) {
    throw new LazarusError("USAGE", `${JSON.stringify(expression)} is not a cron expression`, {
      hint: 'five fields: "30 6 * * 1-5" is half past six on weekdays',
      cause: error,
    });
  }
}
