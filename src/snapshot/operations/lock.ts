// The first two steps of every operation that writes to a vault: take its lock, then finish a restore that was
// interrupted, because a cell halfway between two states must be neither saved nor restored over (INV-3), and no agent
// may start in it.
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Lock, tryAcquireLock } from "../../platform/lock.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { MissionContext } from "../mission-context.ts";
import { finishInterruptedRestore, type Restored } from "../restore/roll-forward.ts";
import { refuseStaleWorktree } from "../worktree.ts";
import { recordRollForward } from "./record.ts";

export interface LockedVault extends Disposable {
  readonly lock: Lock;
  /** The interrupted restore that was finished, if there was one. */
  readonly finished: Restored | undefined;
}

export async function lockVault(context: MissionContext, purpose: string): Promise<LockedVault> {
  const lock = await context.vault.lock(purpose);
  try {
    refuseStaleWorktree(context);
    const finished = finishInterruptedRestore(context, lock);
    recordRollForward(context, finished);
    removeStaleDrill(context);
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

/** Where a drill restores to, and the lock that it holds during that time. */
export function drillPlaces({ vault, cellRoot, mission }: MissionContext): {
  scratch: string;
  lockFile: string;
} {
  const scratch = join(dirname(cellRoot), `.lazarus-drill-${mission}`);
  return { scratch, lockFile: join(vault.root, "lazarus", "drill.lock") };
}

/** A drill that was killed leaves a copy of the whole cell. */
function removeStaleDrill(context: MissionContext): void {
  const { scratch, lockFile } = drillPlaces(context);
  if (!existsSync(scratch)) return;
  using lock = tryAcquireLock(context.machine, lockFile, "removal of a killed drill");
  if (lock !== undefined) removeTree(scratch);
}

/** What a vault has in its own directory before anything is stored. */
const EMPTY = new Set(["lock", "scratch", "reserve"]);

/** Removes the vault that was made for a new mission, if nothing was stored in it. The caller holds its lock. */
export function discardEmptyVault({ vault }: MissionContext, lock: Lock): void {
  try {
    const others = readdirSync(dirname(lock.path)).filter((name) => !EMPTY.has(name));
    if (vault.list().length + vault.blobs().length + others.length === 0) removeTree(vault.root);
  } catch {
    // The operation has failed already, and its error matters more.
  }
}

/** Finishes an interrupted restore; undefined when there is none. For a caller that is about to start an agent. */
export async function finishRestore(context: MissionContext): Promise<Restored | undefined> {
  if (!existsSync(context.vault.journalFile)) return undefined;
  using locked = await lockVault(context, `unfinished restore of ${context.mission}`);
  return locked.finished;
}
