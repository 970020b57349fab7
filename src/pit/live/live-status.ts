// What the pit tells other processes about live protection: one small file per mission, outside the cell. It is a hint for
// `status` and valid only while the pit that wrote it runs, so it is replaced as a whole but not made durable.
import { dirname, join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { makeDirectory, placeFile, removeFile } from "../../platform/durable.ts";
import { formatJson, readJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";

/** How a mission is protected while it works. */
export interface LiveStatus {
  /** Since when something is not in a checkpoint (epoch ms); null: everything is. */
  readonly unsaved_since_ms: number | null;
  /** Approximate number of unsaved changes: at least half of the real number. */
  readonly unsaved_changes: number;
  /** Whether they have waited longer than `protect_within_seconds`. */
  readonly is_late: boolean;
  /** Why changes are not noticed immediately; null: they are. */
  readonly unwatched: string | null;
  /** Why the last attempt at a point failed. */
  readonly problem: string | null;
}

export function liveStatusFile(config: Config, mission: string): string {
  return join(config.run_dir, "live", `${mission}.json`);
}

export function writeLiveStatus(
  machine: Pick<Machine, "disk">,
  config: Config,
  mission: string,
  status: LiveStatus & { readonly pid: number },
): void {
  const file = liveStatusFile(config, mission);
  makeDirectory(machine.disk, dirname(file));
  placeFile(machine.disk, file, formatJson(status), { isHint: true });
}

/** The mission is no longer protected. */
export function removeLiveStatus(machine: Pick<Machine, "disk">, config: Config, mission: string): void {
  removeFile(machine.disk, liveStatusFile(config, mission));
}

/** Undefined when the pit `pid` does not protect the mission. */
export function readLiveStatus(config: Config, mission: string, pid: number): LiveStatus | undefined {
  const reading = readJsonFile(liveStatusFile(config, mission));
  if (!reading.ok || reading.value.pid !== pid) return undefined;
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  const { unsaved_since_ms: since, unsaved_changes: changes, unwatched, problem } = reading.value;
  return {
    unsaved_since_ms: typeof since === "number" ? since : null,
    unsaved_changes: typeof changes === "number" ? changes : 0,
    is_late: reading.value.is_late === true,
    unwatched: text(unwatched),
    problem: text(problem),
  };
}
