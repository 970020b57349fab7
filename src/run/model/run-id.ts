// Ids of runs: sortable by creation time and unique across hosts.
import { LazarusError } from "../../platform/errors.ts";
import { randomText, timeOrderedId } from "../../platform/ids.ts";
import type { Machine } from "../../platform/machine.ts";

/** Extra random characters: a host may create thousands of runs within one second. */
const EXTRA_RANDOM = 6;
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Creates a unique run id that sorts by creation time. */
export function createRunId(machine: Machine, nowMs: number): string {
  return timeOrderedId(nowMs, machine.ids) + randomText(machine.ids, EXTRA_RANDOM);
}

/** The error for an id that cannot name a run. */
export function invalidRunId(id: unknown): LazarusError {
  return new LazarusError("RUN_ID_INVALID", `${JSON.stringify(id)} is not a run id`, {
    hint: "use 1 to 128 letters, digits, '_' or '-', starting with a letter or digit, or omit it",
  });
}

/** Whether a caller-supplied id can name a run. */
export function isRunId(id: unknown): boolean {
  return typeof id === "string" && RUN_ID.test(id);
}
