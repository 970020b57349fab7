// Ids of runs: sortable by creation time and unique across hosts.
import { randomText, timeOrderedId } from "../../platform/ids.ts";
import type { Machine } from "../../platform/machine.ts";

/** Extra random characters: a host may create thousands of runs within one second. */
const EXTRA_RANDOM = 6;
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Creates a unique run id that sorts by creation time. */
export function createRunId(machine: Machine, nowMs: number): string {
  return timeOrderedId(nowMs, machine.ids) + randomText(machine.ids, EXTRA_RANDOM);
}

/** Whether a caller-supplied id can name a run. */
export function isRunId(id: string): boolean {
  return RUN_ID.test(id);
}
