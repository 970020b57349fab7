// Makes a directory outside the cell a mission's worktree, and undoes that. Nothing is written into the directory. Order:
// refuse → mission lock → vault lock → forget the caches → record → cell. From the record on, the directory is captured and
// restored as `worktree/…`; a crash before it leaves everything as it was.
import { existsSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { initCell } from "../../cell/init.ts";
import { isKnownMission } from "../../cell/known-missions.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { lockMissionAfterStop } from "../../cell/mission-lock.ts";
import {
  describeWorktree,
  findMoved,
  identifyDirectory,
  isSameDirectory,
  listWorktreeRecords,
  readWorktreeRecord,
  seenFrom,
  type WorktreeRecord,
  worktreeRecords,
  writeWorktreeRecord,
} from "../../cell/worktree-record.ts";
import { nameMission, refuseWorktree } from "../../cell/worktree-rules.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { acquireLock, type Lock } from "../../platform/lock.ts";
import type { Machine } from "../../platform/machine.ts";
import { type MissionContext, resolvePath } from "../mission-context.ts";
import { WORKTREE } from "../model/cell-tree.ts";
import { finishInterruptedRestore } from "../restore/roll-forward.ts";
import { markWorktree, treeOf } from "../worktree.ts";
import { refuseLiveAgent } from "./live-processes.ts";

/** What `protectDirectory` did. */
export interface Protection {
  readonly record: WorktreeRecord;
  /** same: it was the worktree already. moved: the mission had another directory, or this one at another path. */
  readonly change: "same" | "new" | "moved";
}

/** The real path of an existing directory. */
export function resolveDirectory(directory: string): string {
  let path: string;
  try {
    path = realpathSync.native(directory);
  } catch (error) {
    const known = asLazarusError(error, `opening ${directory}`);
    if (known.code !== "NOT_FOUND") throw known;
    throw new LazarusError("NOT_FOUND", `there is no directory ${directory}`, {
      hint: `mkdir -p ${directory}; or mount its file system`,
    });
  }
  if (statSync(path).isDirectory()) return path;
  throw new LazarusError("NOT_FOUND", `${directory} is not a directory`, { hint: `ls -ld ${directory}` });
}

/**
 * The mission that protects a directory, even if the directory has moved; otherwise the one that protected it last;
 * otherwise a new one with its name.
 */
export function missionOf(config: Config, path: string): MissionId {
  const known = listWorktreeRecords(config.missions_root).filter((record) => record.path === path);
  const owner = known.find(({ released_ms }) => released_ms === null);
  const found = owner ?? findMoved(config.missions_root, path) ?? known.at(-1);
  if (found !== undefined) return found.mission_id as MissionId;
  return nameMission(path, (mission) => isKnownMission(config, mission));
}

/** `path` is absolute with links resolved; `home` is the user's home directory. The caller opens the mission again. */
export async function protectDirectory(
  context: MissionContext,
  path: string,
  home: string | undefined,
): Promise<Protection> {
  const { machine, config, mission } = context;
  // Held until the record is written: two missions must not get overlapping directories.
  using _records = await lockRecords(machine, config);
  const old = readWorktreeRecord(config.missions_root, mission);
  refuseDirectory(context, path, home);
  const change = decideChange(mission, old, path);
  if (change === "same") {
    completeCell(context, old!);
    return { record: old!, change };
  }
  if (old === undefined || old.released_ms !== null) refuseOwnFiles(context);
  using _mission = await lockMissionAfterStop(machine, config, mission, `setup of ${mission}`);
  refuseLiveAgent(context, "setup");
  using lock = await context.vault.lock(`setup of ${mission}`);
  // A restore that was interrupted in a directory which was moved since is finished in the new place.
  if (context.tree === context.cellRoot) finishInterruptedRestore(context, lock);
  const record = describeWorktree(mission, path, machine.clock.nowMs());
  // Checkpoints from before belong to the same directory.
  const isSame = old !== undefined && (old.path === path || isSameDirectory(old, record));
  // They describe files of another directory.
  rmSync(context.cacheDirectory, { recursive: true, force: true });
  crashPoint("snapshot.protect.cache-removed");
  writeWorktreeRecord(machine, config.missions_root, isSame ? { ...record, since_ms: old.since_ms } : record);
  crashPoint("snapshot.protect.recorded");
  completeCell(context, record);
  return { record, change };
}

function lockRecords(machine: Machine, config: Config): Promise<Lock> {
  const directory = worktreeRecords(config.missions_root);
  makeDirectory(machine.disk, directory);
  return acquireLock(machine, join(directory, "lock"), { purpose: "setup of a worktree" });
}

function refuseDirectory({ config, mission }: MissionContext, path: string, home: string | undefined): void {
  const { missions_root, vault_root, run_dir, heartbeat_dir, registry_file } = config;
  const places = [missions_root, vault_root, run_dir, heartbeat_dir];
  const base = dirname(missions_root);
  const isOneHome = [...places, registry_file].every((place) => dirname(place) === base);
  const seen = (place: string) => seenFrom(path, resolvePath(place));
  const refusal = refuseWorktree(path, {
    home: home === undefined ? undefined : seen(home),
    own: [...(isOneHome ? [base] : []), ...places, registry_file].map(seen),
    others: listWorktreeRecords(config.missions_root)
      .filter((other) => other.released_ms === null && other.mission_id !== mission)
      .map((other) => ({ mission: other.mission_id, path: seen(other.path) })),
  });
  if (refusal === undefined) return;
  const message = `${path} cannot be the worktree of ${mission}: ${refusal.reason}`;
  throw new LazarusError("WORKTREE_REFUSED", message, { hint: refusal.hint, details: { mission, path } });
}

function decideChange(mission: string, old: WorktreeRecord | undefined, path: string): Protection["change"] {
  if (old === undefined || old.released_ms !== null) return "new";
  const [before, now] = [identifyDirectory(old.path), identifyDirectory(path)];
  const isThere = before !== undefined && isSameDirectory(old, before);
  if (old.path === path && isThere) return "same";
  if (!isThere || (now !== undefined && isSameDirectory(old, now))) return "moved";
  throw new LazarusError(
    "WORKTREE_REFUSED",
    `${mission} already protects ${old.path}, which is still there`,
    {
      hint: `lazarus release ${mission}, or choose another mission for ${path}`,
      details: { mission, path: old.path },
    },
  );
}

/** Files in the cell's own worktree would be hidden by the directory. */
function refuseOwnFiles({ cellRoot, mission }: MissionContext): void {
  const own = join(cellRoot, WORKTREE);
  if (!existsSync(own) || readdirSync(own).length === 0) return;
  throw new LazarusError("WORKTREE_NOT_EMPTY", `${mission} has files in its own worktree ${own}`, {
    hint: "choose another mission for this directory",
    details: { mission },
  });
}

/** Completes the cell of a mission whose record is written. */
function completeCell(context: MissionContext, record: WorktreeRecord): void {
  const { machine, config, mission, cellRoot } = context;
  const { made } = initCell(machine, config, mission);
  markWorktree({ ...context, tree: treeOf(cellRoot, record), worktree: record });
  if (made.length === 0) return;
  context.record((registry) =>
    registry.append({ kind: "init", mission, data: { root: cellRoot, made, worktree: record.path } }),
  );
}

/** For a new mission with its worktree in the cell: refuses the name of one that has, or had, a directory in place. */
export function refuseProtecting({ mission, worktree }: MissionContext): void {
  if (worktree === undefined) return;
  throw new LazarusError(
    "TARGET_NOT_EMPTY",
    `mission ${mission} already exists, for the directory ${worktree.path}`,
    {
      hint: "choose another name",
      details: { mission, path: worktree.path },
    },
  );
}

/** Ends the protection of a mission's directory, which is not touched. Checkpoints stay. */
export async function releaseDirectory(context: MissionContext): Promise<WorktreeRecord> {
  const { machine, config, mission } = context;
  const record = readWorktreeRecord(config.missions_root, mission);
  if (record === undefined || record.released_ms !== null)
    throw new LazarusError("NOT_FOUND", `${mission} protects no directory outside its cell`, {
      hint: "lazarus status",
      details: { mission },
    });
  using _mission = await lockMissionAfterStop(machine, config, mission, `release of ${mission}`);
  refuseLiveAgent(context, "setup");
  using lock = await context.vault.lock(`release of ${mission}`);
  if (identifyDirectory(record.path) !== undefined) finishInterruptedRestore(context, lock);
  const released = { ...record, released_ms: machine.clock.nowMs() };
  writeWorktreeRecord(machine, config.missions_root, released);
  context.record((registry) =>
    registry.append({ kind: "init", mission, data: { root: context.cellRoot, released: record.path } }),
  );
  return released;
}
