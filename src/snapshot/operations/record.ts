// Records what an operation did in the registry: rows of the checkpoint index and one event. Every caller that makes,
// restores, marks or removes checkpoints uses these functions. The registry is a cache, so a failed write never fails
// the operation: the context's `record` reports it.
import {
  type CheckpointRow,
  forgetCheckpoints,
  forgetMission,
  indexCheckpoint,
} from "../../registry/checkpoints.ts";
import type { CaptureResult } from "../capture/capture.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointMetadata, CheckpointRef, Flaw } from "../model/entry.ts";
import { type Changes, countChanges } from "../restore/plan.ts";
import type { Restored } from "../restore/roll-forward.ts";
import { readCheckpoint } from "../vault/manifest.ts";

/** A new checkpoint and the checkpoints pruned after it. */
export function recordCheckpoint(
  context: MissionContext,
  result: CaptureResult,
  { pruned = [], tookMs }: { readonly pruned?: readonly string[]; readonly tookMs?: number } = {},
): void {
  const { mission } = context;
  context.record((registry) => {
    indexCheckpoint(registry, checkpointRow(mission, result.ref, result.checkpoint.metadata));
    forgetCheckpoints(registry, mission, pruned);
    registry.append({
      kind: "checkpoint",
      mission,
      data: {
        checkpoint: result.ref.id,
        reason: result.ref.reason,
        outcome: result.outcome,
        flaws: result.flaws.length,
        ...(tookMs === undefined ? {} : { took_ms: tookMs }),
      },
    });
  });
}

export interface RestoreRecord {
  readonly kind: "restore" | "undo";
  readonly target: string;
  /** The safety checkpoint; null when there was no cell. */
  readonly safety: { readonly ref: CheckpointRef; readonly metadata: CheckpointMetadata } | null;
  readonly changes: Changes;
  readonly flaws: readonly Flaw[];
  /** Who asked for it, when it was not a user. */
  readonly by?: string | undefined;
}

/** A restore or undo, and its safety checkpoint. */
export function recordRestore(context: MissionContext, restore: RestoreRecord): void {
  const { kind, target, safety, changes, flaws, by } = restore;
  const { mission } = context;
  context.record((registry) => {
    if (safety !== null) indexCheckpoint(registry, checkpointRow(mission, safety.ref, safety.metadata));
    registry.append({
      kind,
      mission,
      data: {
        checkpoint: target,
        safety: safety?.ref.id ?? null,
        ...countChanges(changes),
        flaws: flaws.length,
        ...(by === undefined ? {} : { by }),
      },
    });
  });
}

/** A mission made by fork or import, and its first checkpoint. */
export function recordNewMission(
  context: MissionContext,
  origin: Readonly<Record<string, unknown>>,
  capture: CaptureResult,
): void {
  const { mission, cellRoot: root } = context;
  context.record((registry) => registry.append({ kind: "init", mission, data: { root, ...origin } }));
  recordCheckpoint(context, capture);
}

/** A changed pin. */
export function recordPin(context: MissionContext, ref: CheckpointRef): void {
  context.record((registry) =>
    indexCheckpoint(
      registry,
      checkpointRow(context.mission, ref, readCheckpoint(context.vault, ref).metadata),
    ),
  );
}

/** A drill; a checkpoint without differences is now proven. */
export function recordDrill(
  context: MissionContext,
  { ref, metadata }: { readonly ref: CheckpointRef; readonly metadata: CheckpointMetadata },
  differences: number,
): void {
  const { mission } = context;
  context.record((registry) => {
    if (differences === 0) indexCheckpoint(registry, checkpointRow(mission, ref, metadata));
    registry.append({ kind: "verify", mission, data: { drill: true, checkpoint: ref.id, differences } });
  });
}

export function recordPrune(
  context: MissionContext,
  pruned: {
    readonly removed: readonly CheckpointRef[];
    readonly kept: readonly CheckpointRef[];
    readonly freedBytes: number;
  },
): void {
  const { mission } = context;
  const { removed, kept, freedBytes } = pruned;
  context.record((registry) => {
    forgetCheckpoints(
      registry,
      mission,
      removed.map(({ id }) => id),
    );
    const data = { removed: removed.length, kept: kept.length, freed_bytes: freedBytes };
    registry.append({ kind: "prune", mission, data });
  });
}

export function recordDeletion(context: MissionContext, data: Readonly<Record<string, unknown>>): void {
  const { mission } = context;
  context.record((registry) => {
    forgetMission(registry, mission);
    registry.append({ kind: "delete", mission, data });
  });
}

/** The process that began this restore was killed before it could record it. */
export function recordRollForward(context: MissionContext, finished: Restored | undefined): void {
  if (finished === undefined) return;
  const { mission, vault } = context;
  const { target, safety, changes, flaws } = finished;
  context.record((registry) => {
    const ref = vault.list().find(({ id }) => id === safety);
    if (ref !== undefined)
      indexCheckpoint(registry, checkpointRow(mission, ref, readCheckpoint(vault, ref).metadata));
    const data = { checkpoint: target, safety, ...countChanges(changes), flaws: flaws.length };
    registry.append({ kind: "restore", mission, data: { ...data, interrupted: true } });
  });
}

export function checkpointRow(
  mission: string,
  ref: CheckpointRef,
  metadata: CheckpointMetadata,
): CheckpointRow {
  return {
    mission,
    id: ref.id,
    parent: ref.parent,
    reason: ref.reason,
    created_ms: ref.createdAtMs,
    manifest: ref.manifest,
    files: metadata.counts.files,
    bytes: metadata.counts.bytes,
    degraded: metadata.flaws.length > 0 || metadata.git.status === "degraded",
    pinned: ref.pinned,
    proven_ms: ref.provenAtMs,
    config: metadata,
  };
}
