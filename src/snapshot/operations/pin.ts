// Marks on a checkpoint that may change after it was made. They live in the index alone: the checkpoint itself, its
// manifest and its layers never change.

import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { lockVault } from "./lock.ts";
import { recordPin } from "./record.ts";

export interface PinResult {
  readonly ref: CheckpointRef;
  /** False when it was so already. */
  readonly changed: boolean;
}

/** Pins or unpins a checkpoint. A pinned one is never pruned. */
export async function setPin(
  context: MissionContext,
  text: string | undefined,
  pinned: boolean,
): Promise<PinResult> {
  const { vault, mission, machine } = context;
  // Asked before the lock is taken, which would make a vault for a mission that has none.
  const question = { mission, text, nowMs: machine.clock.nowMs() };
  const { id } = findCheckpoint(vault.list(), question);
  using _locked = await lockVault(context, `${pinned ? "pin" : "unpin"} of ${mission}`);
  const refs = vault.list();
  const ref = findCheckpoint(refs, { ...question, text: id });
  if (ref.pinned === pinned) return { ref, changed: false };
  const marked = { ...ref, pinned };
  vault.publish(refs.map((each) => (each.id === id ? marked : each)));
  recordPin(context, marked);
  return { ref: marked, changed: true };
}
