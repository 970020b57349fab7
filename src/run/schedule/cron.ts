// Cron expressions, parsed by croner. Pure: the time is a parameter.
import { Cron } from "croner";
import { LazarusError } from "../../platform/errors.ts";

/**
 * When a cron expression fires next after `nowMs`; null when never. `timezone` is an IANA name, default UTC. Throws USAGE
 * for an invalid expression.
 */
export function nextCronTime(expression: string, nowMs: number, timezone = "UTC"): number | null {
  try {
    const next = new Cron(expression, { timezone, paused: true }).nextRun(new Date(nowMs));
    return next === null ? null : next.getTime();
  } catch (error) {
    throw new LazarusError("USAGE", `${JSON.stringify(expression)} is not a cron expression`, {
      hint: 'use five fields, such as "30 6 * * 1-5" for 6:30 on weekdays',
      cause: error,
    });
  }
}
