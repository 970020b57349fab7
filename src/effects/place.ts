// Where a mission's effect history is: next to its cell, so that a restore of the cell does not change it, and derived from
// the path of the cell alone, so that every program that works in the cell finds the same file, independent of its environment
// and configuration. Read-only.
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isMissionId } from "../cell/mission-id.ts";
import { findProtecting } from "../cell/worktree-record.ts";

/** Skipped by scans of the missions root, like every name that starts with `.lazarus-`. */
const DIRECTORY = ".lazarus-effects";

/** The history of the cell at `cellRoot`, which need not exist. */
export function historyFile(cellRoot: string): string {
  const real = resolveExisting(cellRoot);
  return join(dirname(real), DIRECTORY, `${basename(real)}.jsonl`);
}

/** A cell, and a path inside it. */
export interface CellPlace {
  readonly cellRoot: string;
  readonly file: string;
  /** The path relative to the cell. */
  readonly inside: string;
}

/**
 * The innermost cell that `path` is in; undefined when it is in none. The path itself need not exist. A path outside of all
 * cells may be in the worktree of one below `missionsRoot`.
 */
export function findCell(path: string, missionsRoot?: () => string): CellPlace | undefined {
  const real = resolveExisting(path);
  for (let directory = real; dirname(directory) !== directory; directory = dirname(directory)) {
    if (!isMissionId(basename(directory))) continue;
    const file = join(dirname(directory), DIRECTORY, `${basename(directory)}.jsonl`);
    // An agent may have deleted its seed files; its history is still there.
    if (!existsSync(join(directory, "meta", "mission.json")) && !existsSync(file)) continue;
    return { cellRoot: directory, file, inside: real.slice(directory.length + 1) };
  }
  return missionsRoot === undefined ? undefined : findOutside(real, missionsRoot());
}

function findOutside(path: string, missionsRoot: string): CellPlace | undefined {
  const record = findProtecting(missionsRoot, path);
  if (record === undefined) return undefined;
  const cellRoot = join(missionsRoot, record.mission_id);
  const inside = join("worktree", path.slice(record.path.length));
  return { cellRoot, file: historyFile(cellRoot), inside };
}

/** The real path, as far as it exists. */
function resolveExisting(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(resolveExisting(parent), basename(path));
  }
}
