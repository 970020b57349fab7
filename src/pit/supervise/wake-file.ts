// Wake files: a command touches a file named after the mission in a directory that the pit watches. A missed wake-up only
// costs time, since the pit also rescans every few seconds.
import { mkdirSync, utimesSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";

/** The name on disk predates the term "wake file"; older commands still use it. */
function wakeDirectory(config: Config): string {
  return join(config.run_dir, "bell");
}

export function wakeFile(config: Config, mission: string): string {
  return join(wakeDirectory(config), mission);
}

export function wakePit(machine: Machine, config: Config, mission: string): void {
  const directory = wakeDirectory(config);
  const file = wakeFile(config, mission);
  const now = machine.clock.nowMs() / 1000;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(file, "", { mode: 0o600 });
    utimesSync(file, now, now);
  } catch {
    // The pit notices at its next rescan.
  }
}

/** How to raise the inotify limits of Linux. */
const REMEDIES: Readonly<Record<string, string>> = {
  EMFILE: "sysctl fs.inotify.max_user_instances=1024",
  ENOSPC: "sysctl fs.inotify.max_user_watches=524288",
};

/** Where the system refuses a watch, `onRefused` gets the reason, and the pit's rescans remain. */
export function watchWakeFiles(
  config: Config,
  onWake: (mission: MissionId) => void,
  onRefused: (line: string) => void,
  watchDirectory: typeof watch = watch,
): Disposable {
  const directory = wakeDirectory(config);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  try {
    const watcher = watchDirectory(directory, (_, name) => {
      if (name !== null && isMissionId(name)) onWake(name);
    });
    // The directory was removed.
    watcher.on("error", () => {});
    return { [Symbol.dispose]: () => watcher.close() };
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    const remedy = process.platform === "linux" ? REMEDIES[code] : undefined;
    onRefused(`cannot watch ${directory} (${code})${remedy === undefined ? "" : `; try: ${remedy}`}`);
    return { [Symbol.dispose]() {} };
  }
}
