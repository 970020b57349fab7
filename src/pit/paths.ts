// Names of the pit's own files below `run_dir` and of the agent's log below its cell. No I/O.
import { join } from "node:path";
import type { Config } from "../cell/config.ts";

/** Held by the pit as long as it runs. */
export function pitLockFile(runDir: string): string {
  return join(runDir, "pit.lock");
}

/** The same for every pit of a home, so that an agent can be given the path before a pit runs. */
export function pitSocketFile(runDir: string): string {
  return join(runDir, "pit.sock");
}

/** The agent's stdout and stderr. */
export function agentLog(cellRoot: string): string {
  return join(cellRoot, "logs", "agent.log");
}

/** The watcher's own, for events that it must report. */
export function watchDirectory({ run_dir: runDir }: Config): string {
  return join(runDir, "watch");
}

/** Space that is released when the disk is full, so that a user's command can still be recorded. */
export function reserveFile({ run_dir: runDir }: Config): string {
  return join(runDir, "reserve");
}

export const RESERVE_BYTES = 1 << 20;
