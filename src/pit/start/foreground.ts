// An agent in the foreground: its terminal is the caller's, signals that only we get are passed on, and the caller ends
// with the agent's own exit status.

import type { MissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import { settleLife } from "../death/handle-exit.ts";
import { signal } from "../death/orphans.ts";
import type { MissionRecord } from "../record/record.ts";
import { lifeGoesOn, readLife, shellStatus } from "./life.ts";
import { exitOf, type Started } from "./start-agent.ts";

const LOOK_MS = 10;

const PASSED_ON: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];

export interface SignalRelay extends Disposable {
  /** Whom they go to from now on; what came before goes there first. */
  to(pid: number): void;
}

/**
 * Catches the signals that this process gets and passes them on. Opened before the other process exists, so that none is
 * lost. SIGQUIT means `leave`, where that is given. `shared`: both are in the terminal's foreground, so Ctrl-C and Ctrl-\\
 * reach the other by themselves.
 */
export function openSignalRelay(options: { leave?(): void; shared?: boolean } = {}): SignalRelay {
  const waiting: NodeJS.Signals[] = [];
  let target: number | undefined;
  const passOn = (name: NodeJS.Signals) => {
    if (name === "SIGQUIT" && options.leave !== undefined) options.leave();
    else if (options.shared && (name === "SIGINT" || name === "SIGQUIT")) return;
    else if (target === undefined) waiting.push(name);
    else signal(target, name);
  };
  const names: NodeJS.Signals[] = [...PASSED_ON, "SIGQUIT"];
  for (const name of names) process.on(name, passOn);
  return {
    to(pid) {
      target = pid;
      for (const name of waiting.splice(0)) signal(pid, name);
    },
    [Symbol.dispose]() {
      for (const name of names) process.off(name, passOn);
    },
  };
}

export interface ForegroundEnd {
  readonly status: number;
  /** Undefined when a pit was faster. */
  readonly record: MissionRecord | undefined;
  /** The life that a pit has begun meanwhile. */
  readonly revivedAs: number | undefined;
  readonly problem: string | undefined;
}

/** Waits for the agent's end and deals with it, unless a pit was faster. */
export async function accompany(
  context: PitContext,
  mission: MissionId,
  started: Started,
  relay: SignalRelay,
): Promise<ForegroundEnd> {
  const { machine, config } = context;
  if (started.life !== undefined) relay.to(started.life.agent.pid);
  await started.ended;
  // A pit may have been faster than we are: the next life is not ours to wait for.
  const isOurs = () => (readLife(config, mission)?.epoch ?? started.epoch) <= started.epoch;
  while (isOurs() && lifeGoesOn(machine.processes, config, mission)) await machine.clock.sleep(LOOK_MS);
  const exit = exitOf(context, mission, started.epoch);
  const status = exit === undefined ? 1 : shellStatus(exit);
  using _ = await context.lockMission(mission, `end of ${mission}`);
  const settled = await settleLife(context, mission);
  const successor = readLife(config, mission)?.epoch ?? 0;
  const revivedAs = settled.state === "alive" && successor > started.epoch ? successor : undefined;
  const record = settled.state === "settled" || settled.state === "unkept" ? settled.record : undefined;
  return {
    status,
    record,
    revivedAs,
    problem: settled.state === "unkept" ? settled.error.message : undefined,
  };
}
