// Undoes the last restore by restoring its safety checkpoint, limited to the paths that the restore was limited to. The
// undo takes its own safety checkpoint, so a second undo is a redo (INV-3).
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { type Part, pathsOf } from "../restore/scope.ts";
import { type RestoreResult, restoreTarget } from "./restore.ts";

/** What an undo changed. */
export interface UndoResult extends RestoreResult {
  /** Id of the checkpoint that the undone restore had restored. */
  readonly undone: string;
}

/** The safety checkpoint of the last restore that changed the cell. */
export function findUndo(
  refs: readonly CheckpointRef[],
  mission: string,
): CheckpointRef & { beforeRestoreOf: string } {
  const found = refs.findLast((ref) => ref.beforeRestoreOf !== null);
  if (found !== undefined) return found as CheckpointRef & { beforeRestoreOf: string };
  throw new LazarusError(
    "NOTHING_TO_UNDO",
    `nothing to undo: no restore has changed the cell of ${mission}`,
    {
      hint: `lazarus checkpoints ${mission}, then lazarus restore ${mission} <id>`,
      details: { mission },
    },
  );
}

/** What the restore covered, or the chosen part of it. */
function undonePart({ restoredPaths = [], restoredPart }: CheckpointRef, part: Part | undefined) {
  const isWhole = restoredPaths.length === 0 && restoredPart === undefined;
  if (part === undefined || !isWhole) return { paths: restoredPaths, part: restoredPart };
  return { paths: pathsOf(part, []), part };
}

/** Undoes the last restore. `part`: only the files, or only the conversation, of one that moved both. */
export async function undoRestore(
  context: MissionContext,
  signal?: AbortSignal,
  heldLock?: Lock,
  part?: Part,
): Promise<UndoResult> {
  let undone = "";
  const choose = () => {
    const found = findUndo(context.vault.list(), context.mission);
    undone = found.beforeRestoreOf;
    crashPoint("snapshot.undo.found");
    return { target: found, ...undonePart(found, part) };
  };
  const result = await restoreTarget(context, choose, {
    signal,
    kind: "undo",
    ...(heldLock && { heldLock }),
  });
  crashPoint("snapshot.undo.restored");
  return { ...result, undone };
}
