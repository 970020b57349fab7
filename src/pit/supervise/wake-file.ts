// How a command tells the pit that something changed: it touches a file with the mission's name in one directory that the
// pit watches. A bell that nobody hears costs nothing: the pit also looks by itself every few seconds.
import { mkdirSync, utimesSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";

function bellDirectory(config: Config): string {
  return join(config.run_dir, "bell");
}

export function ring(machine: Machine, config: Config, mission: string): void {
  const directory = bellDirectory(config);
  const file = join(directory, mission);
  const now = machine.clock.nowMs() / 1000;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(file, "", { mode: 0o600 });
    utimesSync(file, now, now);
  } catch {
    // The pit looks by itself, only later.
  }
}

/** What to do where Linux has no watch left to give. */
const REMEDIES: Readonly<Record<string, string>> = {
  EMFILE: "sysctl fs.inotify.max_user_instances=1024",
  ENOSPC: "sysctl fs.inotify.max_user_watches=524288",
};

/** Where the system has no watch to give, `onDeaf` hears what and why, and the pit's own looks remain. */
export function listen(
  config: Config,
  heard: (mission: MissionId) => void,
  onDeaf: (line: string) => void,
  watchDirectory: typeof watch = watch,
): Disposable {
  const directory = bellDirectory(config);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  try {
    const watcher = watchDirectory(directory, (_, name) => {
      if (name !== null && isMissionId(name)) heard(name);
    });
    // Someone removed the directory.
    watcher.on("error", () => {});
    return { [Symbol.dispose]: () => watcher.close() };
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    const remedy = process.platform === "linux" ? REMEDIES[code] : undefined;
    onDeaf(`${directory} cannot be watched (${code})${remedy === undefined ? "" : `; try: ${remedy}`}`);
    return { [Symbol.dispose]() {} };
  }
}
