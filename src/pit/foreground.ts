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

/**
 * Passes the signals that this process gets on to another. SIGQUIT means `leave`, where that is given. `shared`: both are
 * in the terminal's foreground, so Ctrl-C and Ctrl-\\ reach the other by themselves.
 */
export function passSignals(pid: number, leave?: () => void, shared = false): Disposable {
  const passOn = (name: NodeJS.Signals) => {
    if (name === "SIGQUIT" && leave !== undefined) leave();
    else if (!(shared && (name === "SIGINT" || name === "SIGQUIT"))) signal(pid, name);
  };
  const names: NodeJS.Signals[] = [...PASSED_ON, "SIGQUIT"];
  for (const name of names) process.on(name, passOn);
  return {
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

/** Waits for the agent's end and deals with it, unless a pit was faster. `onTerminal`: Ctrl-C reaches the agent by itself. */
export async function accompany(
  hands: Hands,
  mission: MissionId,
  started: Started,
  onTerminal: boolean,
): Promise<ForegroundEnd> {
  const { machine, config } = hands;
  {
    const pid = started.life?.agent.pid;
    using _ = pid === undefined ? undefined : passSignals(pid, undefined, onTerminal);
    await started.ended;
    while (lifeGoesOn(machine.processes, config, mission)) await machine.clock.sleep(LOOK_MS);
  }
  const exit = exitOf(hands, mission, started.epoch);
  const status = exit === undefined ? 1 : shellStatus(exit);
  using _ = await hands.lock(mission, `end of ${mission}`);
  const settled = await settleLife(hands, mission);
  if (settled.state === "unkept") return { status, record: settled.record, problem: settled.error.message };
  return { status, record: settled.state === "settled" ? settled.record : undefined, problem: undefined };
}
