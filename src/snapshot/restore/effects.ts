// The effect history in a restore (INV-5): it is not restored. A mark in it records the position to which the
// files were restored, and what happened after that position is reported.
import type { EffectHistory } from "../../effects/history.ts";
import { type EffectNote, effectsAfter } from "../../effects/notes.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointMetadata } from "../model/entry.ts";
import type { Checkpoint } from "../vault/manifest.ts";
import type { Scope } from "./scope.ts";

/** Checkpoints from before there was a history are older than all of it. */
export function effectsPosition(metadata: CheckpointMetadata): number {
  return metadata.effects?.position ?? 0;
}

/** Written before the first file changes; twice if the restore is interrupted. A mission without effects needs no mark. */
export function markRestore(history: EffectHistory, checkpoint: string, position: number | null): void {
  if (history.position() === 0) return;
  history.append({ source: "mission", state: "restored", id: checkpoint, attempt: 0, position });
}

/** What happened after the checkpoint; empty when only some paths are restored. */
export function doneSinceCheckpoint(
  { effects }: MissionContext,
  { metadata }: Checkpoint,
  scope: Scope,
): EffectNote[] {
  return scope.only === undefined ? effectsAfter(effects.read(), effectsPosition(metadata)) : [];
}
