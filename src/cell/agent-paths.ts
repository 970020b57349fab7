// The files that the keeper and the pit keep about a mission's agent, in a directory outside the cell. No I/O.
import { join } from "node:path";
import type { Config } from "./config.ts";
import { agentDirectory } from "./fence.ts";

export interface AgentPaths {
  readonly directory: string;
  readonly record: string;
  /** The environment that is kept for later lives. */
  readonly environment: string;
  readonly epoch: string;
  /** Held by every operation that changes the agent or its cell as a whole. */
  readonly lock: string;
  /** Held shared by every command that waits for the agent to end. */
  readonly stopLock: string;
  /** Held by the keeper as long as it lives, so the kernel tells whether a life is running. */
  readonly lifeLock: string;
  readonly life: string;
  readonly exit: string;
  /** Where viewers of the agent's terminal connect. */
  readonly terminalSocket: string;
  /** The last size of its terminal. */
  readonly terminalSize: string;
  /** The last Ctrl-C or Ctrl-\ typed at its terminal. */
  readonly interrupt: string;
  /** Epoch seconds of the last heartbeat that the keeper wrote on the agent's behalf. */
  readonly beat: string;
}

export function agentPaths(config: Config, mission: string): AgentPaths {
  const directory = agentDirectory(config, mission);
  return {
    directory,
    record: join(directory, "record.json"),
    environment: join(directory, "environment.json"),
    epoch: join(directory, "epoch"),
    lock: join(directory, "lock"),
    stopLock: join(directory, "stop.lock"),
    lifeLock: join(directory, "life.lock"),
    life: join(directory, "life.json"),
    exit: join(directory, "exit.json"),
    beat: join(directory, "beat"),
    terminalSocket: join(directory, "terminal.sock"),
    terminalSize: join(directory, "terminal.json"),
    interrupt: join(directory, "interrupt.json"),
  };
}
