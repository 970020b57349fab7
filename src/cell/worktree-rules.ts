// Which directories may become a mission's worktree, and what such a mission is called. Pure.
import { basename } from "node:path";
import { shellWord } from "../platform/shell-word.ts";
import { isInside, isMissionId, type MissionId } from "./mission-id.ts";

/** Everything a directory is compared with. All paths are absolute, with links resolved. */
export interface Surroundings {
  /** The user's home directory, if known. */
  readonly home: string | undefined;
  /** Directories and files of Lazarus itself. */
  readonly own: readonly string[];
  /** Worktrees of other missions. */
  readonly others: readonly { readonly mission: string; readonly path: string }[];
}

export interface Refusal {
  readonly reason: string;
  readonly hint: string;
}

const CHOOSE = "choose the directory of one project";

/** Their files are made by the kernel when they are read: they can be neither saved nor watched. */
const KERNEL = ["/proc", "/sys"];

/** Why a directory cannot be a worktree; undefined when it can. */
export function refuseWorktree(path: string, { home, own, others }: Surroundings): Refusal | undefined {
  if (path === "/") return { reason: "it is the root of the file system", hint: CHOOSE };
  if (path === "/dev" || KERNEL.some((place) => path === place || isInside(place, path)))
    return { reason: "its files belong to the kernel", hint: CHOOSE };
  if (path === home) return { reason: "it is your home directory", hint: CHOOSE };
  if (home !== undefined && isInside(path, home))
    return { reason: `it contains your home directory ${home}`, hint: CHOOSE };
  for (const place of own) {
    if (path === place || isInside(place, path))
      return { reason: `Lazarus keeps its own files in ${place}`, hint: "choose a directory outside" };
    if (isInside(path, place))
      return { reason: `it contains ${place}, where Lazarus keeps its own files`, hint: CHOOSE };
  }
  for (const other of others) {
    if (path !== other.path && !isInside(path, other.path) && !isInside(other.path, path)) continue;
    const how = path === other.path ? "is" : isInside(path, other.path) ? "contains" : "is inside";
    return {
      reason: `it ${how} ${path === other.path ? "" : `${other.path}, `}the worktree of ${other.mission}`,
      hint: isInside(other.path, path)
        ? `lazarus run ${other.mission} --cwd ${shellWord(path)} -- COMMAND; or: lazarus release ${other.mission}`
        : `lazarus run ${other.mission} -- COMMAND; or: lazarus release ${other.mission}`,
    };
  }
  return undefined;
}

const MAX_LENGTH = 100;

/** A mission id from the name of a directory, with a number if it is taken. */
export function nameMission(path: string, isTaken: (mission: MissionId) => boolean): MissionId {
  const name = basename(path)
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/\.{2,}/g, ".")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, "");
  const slug = name === "" ? "worktree" : name;
  for (let n = 1; ; n += 1) {
    const id = n === 1 ? slug : `${slug}-${n}`;
    if (isMissionId(id) && !isTaken(id)) return id;
  }
}
