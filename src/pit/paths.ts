// Names of the pit's own files below `run_dir` and of the agent's log below its cell. No I/O.
import { join } from "node:path";

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
