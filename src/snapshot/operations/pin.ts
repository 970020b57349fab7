// Pins and unpins checkpoints. A pin is stored in the vault's index only; manifests and layers never change.

import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { lockVault } from "./lock.ts";
import { recordPin } from "./record.ts";

export interface PinResult {
  readonly ref: CheckpointRef;
  /** False when nothing had to be changed. */
  readonly changed: boolean;
}

/** Pins or unpins a checkpoint. A pinned one is never pruned. */
export async function setPin(
  context: MissionContext,
  text: string | undefined,
  pinned: boolean,
): Promise<PinResult> {
  const { vault, mission, machine } = context;
  // Checked first: taking the lock would create a vault for a mission that has none.
  const lookup = { mission, text, nowMs: machine.clock.nowMs() };
  const { id } = findCheckpoint(vault.list(), lookup);
  using _locked = await lockVault(context, `${pinned ? "pin" : "unpin"} of ${mission}`);
  const refs = vault.list();
  const ref = findCheckpoint(refs, { ...lookup, text: id });
  if (ref.pinned === pinned) return { ref, changed: false };
  const marked = { ...ref, pinned };
  vault.publish(refs.map((each) => (each.id === id ? marked : each)));
  recordPin(context, marked);
  return { ref: marked, changed: true };
}
