// The registry's table of checkpoints: what the vaults hold, in one place to ask. A cache: the vaults are the truth, and
// `rebuild` fills it again from them.

import { inTransaction } from "../platform/sqlite.ts";
import type { CheckpointMetadata, CheckpointRef } from "../snapshot/model/entry.ts";
import type { Registry } from "./registry.ts";

export interface IndexedCheckpoint {
  readonly mission: string;
  readonly id: string;
  readonly parent: string | null;
  readonly reason: string;
  readonly created_ms: number;
  readonly manifest: string;
  readonly files: number;
  readonly bytes: number;
  readonly degraded: boolean;
  readonly pinned: boolean;
  readonly proven_ms: number | null;
}

interface CheckpointRow extends Omit<IndexedCheckpoint, "degraded" | "pinned"> {
  degraded: number;
  pinned: number;
}

export interface CheckpointQuery {
  readonly mission?: string | undefined;
}

const INSERT = `
  INSERT INTO checkpoint
    (mission, id, parent, reason, created_ms, manifest, files, bytes, degraded, pinned, proven_ms, config)
  VALUES (:mission, :id, :parent, :reason, :created_ms, :manifest, :files, :bytes, :degraded, :pinned, :proven_ms, :config)
  ON CONFLICT (mission, id) DO UPDATE SET
    parent = excluded.parent, reason = excluded.reason, created_ms = excluded.created_ms,
    manifest = excluded.manifest, files = excluded.files, bytes = excluded.bytes, degraded = excluded.degraded,
    pinned = excluded.pinned, proven_ms = excluded.proven_ms, config = excluded.config`;

/** Enters a checkpoint, or what has changed about it (pin, proof). Durable at return. */
export function indexCheckpoint(
  registry: Registry,
  mission: string,
  ref: CheckpointRef,
  metadata: CheckpointMetadata,
): void {
  registry.database.prepare(INSERT).run(toRow(mission, ref, metadata));
}

/** Removes checkpoints that a vault no longer has. */
export function forgetCheckpoints(registry: Registry, mission: string, ids: readonly string[]): void {
  const remove = registry.database.prepare("DELETE FROM checkpoint WHERE mission = ? AND id = ?");
  inTransaction(registry.database, () => {
    for (const id of ids) remove.run(mission, id);
  });
}

/** Makes the table say exactly this about a mission. */
export function replaceCheckpoints(
  registry: Registry,
  mission: string,
  checkpoints: readonly { readonly ref: CheckpointRef; readonly metadata: CheckpointMetadata }[],
): void {
  const insert = registry.database.prepare(INSERT);
  inTransaction(registry.database, () => {
    registry.database.prepare("DELETE FROM checkpoint WHERE mission = ?").run(mission);
    for (const { ref, metadata } of checkpoints) insert.run(toRow(mission, ref, metadata));
  });
}

/** Missions that the table knows. */
export function indexedMissions(registry: Registry): string[] {
  const rows = registry.database.prepare("SELECT DISTINCT mission FROM checkpoint ORDER BY mission").all();
  return (rows as unknown as { mission: string }[]).map(({ mission }) => mission);
}

/** Oldest first. */
export function listCheckpoints(registry: Registry, query: CheckpointQuery = {}): IndexedCheckpoint[] {
  const rows = registry.database
    .prepare(
      `SELECT mission, id, parent, reason, created_ms, manifest, files, bytes, degraded, pinned, proven_ms
       FROM checkpoint WHERE :mission IS NULL OR mission = :mission ORDER BY created_ms, id`,
    )
    .all({ mission: query.mission ?? null }) as unknown as CheckpointRow[];
  return rows.map((row) => ({ ...row, degraded: row.degraded !== 0, pinned: row.pinned !== 0 }));
}

function toRow(mission: string, ref: CheckpointRef, metadata: CheckpointMetadata) {
  return {
    mission,
    id: ref.id,
    parent: ref.parent,
    reason: ref.reason,
    created_ms: ref.createdMs,
    manifest: ref.manifest,
    files: metadata.counts.files,
    bytes: metadata.counts.bytes,
    degraded: metadata.flaws.length > 0 || metadata.git.status === "degraded" ? 1 : 0,
    pinned: ref.pinned ? 1 : 0,
    proven_ms: ref.provenMs,
    config: JSON.stringify(metadata),
  };
}
