// A keeper whose agent has exited kills what is left, records the exit and ends, within seconds. One that is stopped
// (SIGSTOP) is continued; one that misses its deadline is killed, and the exit is handled without it. `keeperStep` is pure.
import { isKeeperAlive, isKeeperStopped, type Life, readLifeOf } from "../../cell/life.ts";
import { isAlive, type Processes } from "../../platform/process-identity.ts";
import type { PitContext } from "../context.ts";
import { sendSignal } from "../processes/process-table.ts";
import type { MissionRecord } from "../record/record.ts";

const POLL_MS = 20;
/** How long a keeper itself tries to kill what does not die (30 s), and time to write. */
const KEEPER_LIMIT_MS = 40_000;

export interface FinishingKeeper {
  readonly isStopped: boolean;
  /** Since its agent exited. */
  readonly elapsedMs: number;
  readonly leftoverGraceMs: number;
}

export function keeperStep({ isStopped, elapsedMs, leftoverGraceMs }: FinishingKeeper) {
  if (elapsedMs > leftoverGraceMs + KEEPER_LIMIT_MS) return "kill";
  return isStopped ? "continue" : "wait";
}

/** Call it repeatedly until the keeper has ended. */
export function applyKeeperStep(
  processes: Processes,
  { keeper }: Life,
  times: Omit<FinishingKeeper, "isStopped">,
): void {
  if (!isAlive(processes, keeper)) return;
  const step = keeperStep({ ...times, isStopped: isKeeperStopped(keeper) });
  if (step !== "wait") sendSignal(keeper.pid, step === "kill" ? "SIGKILL" : "SIGCONT");
}

/** Waits until the keeper has ended. False when its agent is alive. */
export async function finishKeeper(context: PitContext, record: MissionRecord): Promise<boolean> {
  const { machine, config } = context;
  const { clock, processes } = machine;
  const { mission } = record;
  const life = record.life === null ? undefined : readLifeOf(config, mission, record.life.epoch);
  if (life === undefined || isAlive(processes, life.agent)) return false;
  const leftoverGraceMs = context.settings(record).leftoverGraceSeconds * 1000;
  const startMs = clock.monotonicMs();
  while (isKeeperAlive(processes, config, mission)) {
    applyKeeperStep(processes, life, { elapsedMs: clock.monotonicMs() - startMs, leftoverGraceMs });
    await clock.sleep(POLL_MS);
  }
  return true;
}
