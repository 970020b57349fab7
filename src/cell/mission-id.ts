// Mission ids are checked before a path is built from one, and the path again after links are resolved. An id never leads
// outside the missions root.
import { lstatSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { LazarusError, quietly, systemErrorCode } from "../platform/errors.ts";

/** A valid mission id. */
export type MissionId = string & { readonly __brand: "MissionId" };

const SHAPE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Whether a string is a valid mission id. */
export function isMissionId(text: string): text is MissionId {
  return SHAPE.test(text) && !text.includes("..");
}

/** Validates a mission id. Throws MISSION_ID_INVALID. */
export function parseMissionId(text: string): MissionId {
  if (isMissionId(text)) return text;
  // JSON quoting keeps control characters of a malicious id from the terminal.
  throw new LazarusError("MISSION_ID_INVALID", `${JSON.stringify(shorten(text))} is not a valid mission id`, {
    hint: "use 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit, without '..'",
  });
}

/** The directory of the cell, which need not exist. Throws if it is a link that leads out of the root. */
export function cellRoot(missionsRoot: string, mission: MissionId): string {
  const root = join(missionsRoot, mission);
  const reason = leadsOutside(missionsRoot, root);
  if (reason === undefined) return root;
  throw new LazarusError("MISSION_OUTSIDE_ROOT", `the cell of mission ${mission} is ${reason}`, {
    hint: `ls -l ${root}, and replace the link with a real directory`,
  });
}

/** Throws if a directory of the cell is a link that leads outside. */
export function refuseOutside(root: string, directory: string): void {
  const reason = leadsOutside(root, directory);
  if (reason === undefined) return;
  throw new LazarusError("CELL_DAMAGED", `${directory} is ${reason}; Lazarus does not write through it`, {
    hint: `ls -l ${directory}, and replace the link with a real directory`,
  });
}

/**
 * Why `path` is not below `root`, as a phrase that follows "is"; undefined when it is. A path that does not exist or
 * cannot be read passes: using it gives the system's own error.
 */
export function leadsOutside(root: string, path: string): string | undefined {
  try {
    const target = realpathSync.native(path);
    return isInside(realpathSync.native(root), target)
      ? undefined
      : `a link that leads outside, to ${target}`;
  } catch (error) {
    if (systemErrorCode(error) === "ELOOP") return "a circular link";
    return isLink(path) ? "a dangling link" : undefined;
  }
}

function isLink(path: string): boolean {
  return quietly(() => lstatSync(path).isSymbolicLink()) ?? false;
}

/** Whether `path` is below `root`; both already resolved. */
export function isInside(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function shorten(text: string): string {
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
