// Takes a checkpoint: lock the vault and finish an interrupted restore → capture the cell → prune → record.
import { type CaptureOptions, type CaptureResult, capture } from "../capture/capture.ts";
import { type MissionContext, requireCell } from "../mission-context.ts";
import type { Restored } from "../restore/roll-forward.ts";
import { lockVault } from "./lock.ts";
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
  using _ = await context.slots?.acquire();
  const captured = await capture(context, locked.lock, options);
  // The pit looks often, and most of the time there is nothing to record.
  if (options.reason === "live" && captured.outcome === "unchanged")
    return { ...captured, pruned: [], finished: locked.finished };
  const pruned = (await pruneIfDue(context, locked.lock))?.removed.map(({ id }) => id) ?? [];
  recordCheckpoint(context, captured, { pruned, tookMs: Math.round(clock.monotonicMs() - startMs) });
  return { ...captured, pruned, finished: locked.finished };
}
