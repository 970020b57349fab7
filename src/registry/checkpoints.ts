// The registry's index of checkpoints. The vaults are authoritative: every row can be rebuilt from them
// (snapshot/operations/rebuild-registry.ts). Rows are plain data; this file does not read vaults.
import { inTransaction } from "../platform/sqlite.ts";
import type { Registry } from "./registry.ts";

export interface IndexedCheckpoint {
  readonly mission: string;
  readonly id: string;
  readonly parent: string | null;
  readonly reason: string;
  readonly created_ms: number;
  /** Digest of the manifest. */
  readonly manifest: string;
  readonly files: number;
  readonly bytes: number;
  /** Some path was not captured exactly. */
  readonly degraded: boolean;
  readonly pinned: boolean;
  /** When a drill last proved the checkpoint restorable. */
  readonly proven_ms: number | null;
}

export interface CheckpointRow extends IndexedCheckpoint {
  /** The checkpoint's metadata; stored as JSON. */
  readonly config: object;
}

interface StoredRow extends Omit<IndexedCheckpoint, "degraded" | "pinned"> {
  degraded: number;
  pinned: number;
}

export interface CheckpointQuery {
  readonly mission?: string | undefined;
}

const UPSERT = `
  INSERT INTO checkpoint
    (mission, id, parent, reason, created_ms, manifest, files, bytes, degraded, pinned, proven_ms, config)
  VALUES (:mission, :id, :parent, :reason, :created_ms, :manifest, :files, :bytes, :degraded, :pinned, :proven_ms, :config)
  ON CONFLICT (mission, id) DO UPDATE SET
    parent = excluded.parent, reason = excluded.reason, created_ms = excluded.created_ms,
    manifest = excluded.manifest, files = excluded.files, bytes = excluded.bytes, degraded = excluded.degraded,
    pinned = excluded.pinned, proven_ms = excluded.proven_ms, config = excluded.config`;

/** Inserts or updates one row. */
export function indexCheckpoint(registry: Pick<Registry, "database">, row: CheckpointRow): void {
  registry.database.prepare(UPSERT).run(toStored(row));
}

/** Removes checkpoints that the vault no longer has. */
export function forgetCheckpoints(
  registry: Pick<Registry, "database">,
  mission: string,
  ids: readonly string[],
): void {
  if (ids.length === 0) return;
  const remove = registry.database.prepare("DELETE FROM checkpoint WHERE mission = ? AND id = ?");
  for (const id of ids) remove.run(mission, id);
}

/** Removes all checkpoints of a mission. */
export function forgetMission(registry: Pick<Registry, "database">, mission: string): void {
  registry.database.prepare("DELETE FROM checkpoint WHERE mission = ?").run(mission);
}

/** Replaces all rows of a mission. */
export function replaceCheckpoints(
  registry: Registry,
  mission: string,
  rows: readonly CheckpointRow[],
): void {
  const insert = registry.database.prepare(UPSERT);
  inTransaction(registry.database, () => {
    forgetMission(registry, mission);
    for (const row of rows) insert.run(toStored(row));
  });
}

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
    .all({ mission: query.mission ?? null }) as unknown as StoredRow[];
  return rows.map((row) => ({ ...row, degraded: row.degraded !== 0, pinned: row.pinned !== 0 }));
}

function toStored({ degraded, pinned, config, ...row }: CheckpointRow) {
  return { ...row, degraded: degraded ? 1 : 0, pinned: pinned ? 1 : 0, config: JSON.stringify(config) };
}
