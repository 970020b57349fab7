// Resolves what a user types in a directory: the mission that the directory belongs to, and paths relative to it. Reads only;
// loaded only when a command line needs it.
import { readdirSync, realpathSync } from "node:fs";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { isKnownMission } from "../cell/known-missions.ts";
import { isMissionId, type MissionId } from "../cell/mission-id.ts";
import { findMoved, findProtecting } from "../cell/worktree-record.ts";
import { LazarusError, quietly } from "../platform/errors.ts";
import type { MissionContext } from "../snapshot/mission-context.ts";
import { diskPath, isInWorktree, pathInTree, WORKTREE } from "../snapshot/model/cell-tree.ts";
import type { CliContext } from "./context.ts";

/** Stands for the mission of the current directory. */
export const HERE = ".";

/** The mission of the current directory. */
export function missionHere(context: CliContext): MissionId {
  const mission = missionAtHere(context);
  if (mission !== undefined) return mission;
  const { cwd } = context.surroundings;
  const moved = findMoved(context.config.config.missions_root, realOrGiven(cwd));
  if (moved !== undefined)
    throw new LazarusError(
      "MISSION_UNKNOWN",
      `${cwd} was the worktree of ${moved.mission_id} at ${moved.path}`,
      {
        hint: `lazarus protect . to make it the worktree of ${moved.mission_id} again`,
      },
    );
  throw new LazarusError("MISSION_UNKNOWN", `${cwd} belongs to no mission`, {
    hint: "lazarus protect . to make it one, or lazarus status to list all missions",
  });
}

/** The mission of the current directory; undefined when it belongs to none. */
export function missionAtHere({ config, surroundings: { cwd } }: CliContext): MissionId | undefined {
  return missionAt(config.config.missions_root, cwd);
}

/**
 * Whether the mission was omitted in front of this word (`restore 10m`, `ls src`): no mission has that name, and the current
 * directory belongs to one.
 */
export function isOmitted(context: CliContext, word: string): boolean {
  const [name = ""] = word.split(":");
  const isKnown = isMissionId(name) && isKnownMission(context.config.config, name);
  return !isKnown && missionAtHere(context) !== undefined;
}

/** The mission whose worktree or cell a directory is in. */
export function missionAt(missionsRoot: string, directory: string): MissionId | undefined {
  const path = realOrGiven(directory);
  const [first = ""] = relative(realOrGiven(missionsRoot), path).split(sep);
  const name = findProtecting(missionsRoot, path)?.mission_id ?? first;
  return isMissionId(name) ? name : undefined;
}

/**
 * Paths as typed, as paths in the cell. One that begins with a name in the cell (worktree, state, …) is relative to the
 * cell; any other to the current directory, if that is in the worktree, or else to the worktree.
 */
export function typedPaths(
  { surroundings }: CliContext,
  { tree, cellRoot }: Pick<MissionContext, "tree" | "cellRoot">,
  typed: readonly string[],
): string[] {
  const here = pathInTree(tree, realOrGiven(surroundings.cwd));
  const inWorktree = here !== undefined && isInWorktree(here);
  const base = diskPath(tree, inWorktree ? here : WORKTREE);
  const names = namesIn(cellRoot);
  return typed.map((path) => {
    if (path === "" || isAbsolute(path)) return path;
    const [first = ""] = path.split("/");
    if (first === "." || first === "..") return path === HERE || !inWorktree ? path : resolve(base, path);
    return names.has(first) ? path : resolve(base, path);
  });
}

function namesIn(cellRoot: string): ReadonlySet<string> {
  try {
    return new Set([WORKTREE, ...readdirSync(cellRoot)]);
  } catch {
    // The cell is gone; its checkpoints are not.
    return new Set([WORKTREE, "artifacts", "config", "conversation", "logs", "meta", "state"]);
  }
}

function realOrGiven(path: string): string {
  return quietly(() => realpathSync(path)) ?? path;
}
