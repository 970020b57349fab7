// Takes a checkpoint: lock the vault and finish an interrupted restore → capture the cell → prune → record.
import { type CaptureOptions, type CaptureResult, capture } from "../capture/capture.ts";
import { type MissionContext, requireCell } from "../mission-context.ts";
import type { CheckpointMetadata, Flaw } from "../model/entry.ts";
import type { Restored } from "../restore/roll-forward.ts";
import { discardEmptyVault, lockVault } from "./lock.ts";
import { pruneIfDue } from "./prune.ts";
import { recordCheckpoint } from "./record.ts";

/** Why and how a checkpoint is taken. */
export type CheckpointOptions = CaptureOptions;

/** A new checkpoint, and what was pruned or finished with it. */
export interface CheckpointResult extends CaptureResult {
  /** Checkpoints that the retention policy removed after this one. */
  readonly pruned: readonly string[];
  /** A restore that had been interrupted and was finished first. */
  readonly finished: Restored | undefined;
}

/** Takes a checkpoint of a mission's cell. */
export async function takeCheckpoint(
  context: MissionContext,
  options: CheckpointOptions,
): Promise<CheckpointResult> {
  requireCell(context);
  const { clock } = context.machine;
  const startMs = clock.monotonicMs();
  using locked = await lockVault(context, `checkpoint of ${context.mission}`);
  try {
    requireCell(context);
  } catch (error) {
    // The mission was deleted while this process waited for the lock, which made its vault again.
    discardEmptyVault(context, locked.lock);
    throw error;
  }
  using _ = await context.slots?.acquire();
  const captured = await capture(context, locked.lock, options);
  // The pit checks often, and usually there is nothing to record.
  if (options.reason === "live" && captured.outcome === "unchanged")
    return { ...captured, pruned: [], finished: locked.finished };
  const pruned = (await pruneIfDue(context, locked.lock))?.removed.map(({ id }) => id) ?? [];
  recordCheckpoint(context, captured, { pruned, tookMs: Math.round(clock.monotonicMs() - startMs) });
  return { ...captured, pruned, finished: locked.finished };
}

/** A checkpoint as `lazarus checkpoint --json` and the pit's API report it. Plain data. */
export interface CheckpointReport {
  readonly saved: {
    readonly mission_id: string;
    readonly checkpoint_id: string;
    readonly outcome: CheckpointResult["outcome"];
    readonly parent: string | null;
    readonly counts: CheckpointMetadata["counts"];
    readonly git: CheckpointMetadata["git"];
    readonly flaws: readonly Flaw[];
  };
  /** The interrupted restore that was finished first. */
  readonly finished: { readonly target: string; readonly flaws: readonly Flaw[] } | null;
}

export function reportCheckpoint({
  ref,
  checkpoint,
  outcome,
  flaws,
  finished,
}: CheckpointResult): CheckpointReport {
  const { mission, counts, git } = checkpoint.metadata;
  return {
    saved: {
      mission_id: mission,
      checkpoint_id: ref.id,
      outcome,
      parent: ref.parent,
      counts,
      git,
      flaws,
    },
    finished: finished === undefined ? null : { target: finished.target, flaws: finished.flaws },
  };
}
