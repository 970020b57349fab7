// Finds and opens the checkpoint to restore.
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { withGoodCheckpointHint } from "../restore/damage-hint.ts";
import type { OpenCheckpoint } from "../restore/source.ts";
import { type Checkpoint, readCheckpoint } from "../vault/manifest.ts";

export function findTarget(context: MissionContext, text: string | undefined): CheckpointRef {
  const { vault, mission, machine } = context;
  return findCheckpoint(vault.list(), { mission, text, nowMs: machine.clock.nowMs() });
}

/** Verifies manifest, config and tables; file contents are verified when they are read. */
export function openTarget(
  { vault }: MissionContext,
  target: CheckpointRef,
  open: (checkpoint: Checkpoint) => OpenCheckpoint,
): Promise<OpenCheckpoint> {
  return withGoodCheckpointHint(vault, target, () => open(readCheckpoint(vault, target)));
}
