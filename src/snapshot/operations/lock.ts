// The first two steps of every operation that writes to a vault: take its lock, then finish a restore that was
// interrupted, because a cell halfway between two states must be neither saved nor restored over (INV-3), and no agent
// may start in it.
import { existsSync } from "node:fs";
import type { Lock } from "../../platform/lock.ts";
import type { MissionContext } from "../mission-context.ts";
import { finishInterruptedRestore, type Restored } from "../restore/roll-forward.ts";
import { recordRollForward } from "./record.ts";

export interface LockedVault extends Disposable {
  readonly lock: Lock;
  /** The interrupted restore that was finished, if there was one. */
  readonly finished: Restored | undefined;
}

export async function lockVault(context: MissionContext, purpose: string): Promise<LockedVault> {
  const lock = await context.vault.lock(purpose);
  try {
    const finished = finishInterruptedRestore(context, lock);
    recordRollForward(context, finished);
    const release = () => {
      context.vault.keepReserve();
      lock[Symbol.dispose]();
    };
    return { lock, finished, [Symbol.dispose]: release };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** Finishes an interrupted restore; undefined when there is none. For a caller that is about to start an agent. */
export async function finishRestore(context: MissionContext): Promise<Restored | undefined> {
  if (!existsSync(context.vault.journalFile)) return undefined;
  using locked = await lockVault(context, `unfinished restore of ${context.mission}`);
  return locked.finished;
}
