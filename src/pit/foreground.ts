// An agent in the foreground: it has the caller's terminal, signals to the caller are forwarded to it, and the caller
// exits with its exit status.

import { isKeeperAlive, readExitOf, readLife, toShellStatus } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { PitContext } from "./context.ts";
import { handleExit } from "./death/handle-exit.ts";
import { sendSignal } from "./processes/process-table.ts";
import type { MissionRecord } from "./record/record.ts";
import { readRecord } from "./record/store.ts";
import type { Started } from "./start/start-agent.ts";

const POLL_MS = 10;

const FORWARDED: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];

export interface SignalRelay extends Disposable {
  /** Forwards to this process from now on, first the signals received so far. */
  to(pid: number): void;
}

/**
 * Catches signals to this process and forwards them. Opened before the target exists, so that no signal is lost. SIGQUIT
 * calls `leave` where that is given. `shared`: both are in the terminal's foreground process group, so the terminal
 * itself sends Ctrl-C and Ctrl-\\ to the target.
 */
export function openSignalRelay(options: { leave?(): void; shared?: boolean } = {}): SignalRelay {
  const queued: NodeJS.Signals[] = [];
  let target: number | undefined;
  const forward = (name: NodeJS.Signals) => {
    if (name === "SIGQUIT" && options.leave !== undefined) options.leave();
    else if (options.shared && (name === "SIGINT" || name === "SIGQUIT")) return;
    else if (target === undefined) queued.push(name);
    else sendSignal(target, name);
  };
  const names: NodeJS.Signals[] = [...FORWARDED, "SIGQUIT"];
  for (const name of names) process.on(name, forward);
  return {
    to(pid) {
      target = pid;
      for (const name of queued.splice(0)) sendSignal(pid, name);
    },
    [Symbol.dispose]() {
      for (const name of names) process.off(name, forward);
    },
  };
}

export interface ForegroundEnd {
  readonly status: number;
  /** Undefined when a pit has already revived the agent. */
  readonly record: MissionRecord | undefined;
  /** Epoch of the life that a pit has started since. */
  readonly revivedAs: number | undefined;
  readonly problem: string | undefined;
}

/** Waits until the agent ends and handles the exit, unless a pit was faster. */
export async function waitForAgent(
  context: PitContext,
  mission: MissionId,
  started: Started,
  relay: SignalRelay,
): Promise<ForegroundEnd> {
  const { machine, config } = context;
  if (started.life !== undefined) relay.to(started.life.agent.pid);
  await started.ended;
  // A pit may already have started the next life, which is not ours to wait for.
  const isOurs = () => (readLife(config, mission)?.epoch ?? started.epoch) <= started.epoch;
  while (isOurs() && isKeeperAlive(machine.processes, config, mission)) await machine.clock.sleep(POLL_MS);
  const exit = readExitOf(config, mission, started.epoch);
  using _ = await context.lockMission(mission, `end of ${mission}`);
  const result = await handleExit(context, readRecord(config, mission));
  const successor = readLife(config, mission)?.epoch ?? 0;
  const revived = result.state === "alive" && successor > started.epoch;
  const handled = result.state === "handled" || result.state === "checkpoint-failed";
  return {
    status: exit === undefined ? 1 : toShellStatus(exit),
    record: handled ? result.record : undefined,
    revivedAs: revived ? successor : undefined,
    problem: result.state === "checkpoint-failed" ? result.error.message : undefined,
  };
}
