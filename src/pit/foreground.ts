// An agent in the foreground: its terminal is the caller's, signals that only we get are passed on, and the caller ends
// with the agent's own exit status.

import type { MissionId } from "../cell/mission-id.ts";
import type { Hands } from "./hands.ts";
import { lifeGoesOn, shellStatus } from "./life.ts";
import type { MissionRecord } from "./record.ts";
import { settleLife } from "./settle.ts";
import { exitOf, type Started } from "./start-agent.ts";
import { signal } from "./survivors.ts";

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
  /** Undefined when the scene could not be kept. */
  readonly record: MissionRecord | undefined;
  readonly problem: string | undefined;
}

/** Waits for the agent's end and deals with it, unless a pit was faster. */
export async function accompany(
  hands: Hands,
  mission: MissionId,
  started: Started,
  relay: SignalRelay,
): Promise<ForegroundEnd> {
  const { machine, config } = hands;
  if (started.life !== undefined) relay.to(started.life.agent.pid);
  await started.ended;
  while (lifeGoesOn(machine.processes, config, mission)) await machine.clock.sleep(LOOK_MS);
  const exit = exitOf(hands, mission, started.epoch);
  const status = exit === undefined ? 1 : shellStatus(exit);
  using _ = await hands.lock(mission, `end of ${mission}`);
  const settled = await settleLife(hands, mission);
  if (settled.state === "unkept") return { status, record: settled.record, problem: settled.error.message };
  return { status, record: settled.state === "settled" ? settled.record : undefined, problem: undefined };
}
