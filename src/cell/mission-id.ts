// Mission ids: checked before a path is built from one, and again against what the path resolves to. An id never
// names a place outside the missions root, through links included.
import { lstatSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";

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
  // JSON quoting keeps control characters of a hostile id from reaching the terminal.
  throw new LazarusError("MISSION_ID_INVALID", `${JSON.stringify(shorten(text))} is not a mission id`, {
    hint: "use 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit and without '..'",
  });
}

/** The cell's directory, refused when a link there leads out of the root. The directory need not exist. */
export function cellRoot(missionsRoot: string, mission: MissionId): string {
  const root = join(missionsRoot, mission);
  const reason = leadsOutside(missionsRoot, root);
  if (reason === undefined) return root;
  throw new LazarusError("MISSION_OUTSIDE_ROOT", `the cell of mission ${mission} is ${reason}`, {
    hint: `ls -l ${root}, and replace the link with a real directory`,
  });
}

/** Refuses to write below a directory of the cell that is a link to somewhere else. */
export function refuseOutside(root: string, directory: string): void {
  const reason = leadsOutside(root, directory);
  if (reason === undefined) return;
  throw new LazarusError("CELL_DAMAGED", `${directory} is ${reason}; nothing is written through it`, {
    hint: `ls -l ${directory}, and replace the link with a real directory`,
  });
}

/**
 * Why `path` is not a place below `root`, in words that follow "is"; undefined when it is one. What is not there, or
 * cannot be looked at, leads nowhere: whoever uses it gets the system's own error.
 */
export function leadsOutside(root: string, path: string): string | undefined {
  try {
    const target = realpathSync.native(path);
    return isInside(realpathSync.native(root), target)
      ? undefined
      : `a link that leads outside, to ${target}`;
  } catch (error) {
    if (systemErrorCode(error) === "ELOOP") return "a link that leads in a circle";
    return isLink(path) ? "a link that leads nowhere" : undefined;
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** Whether `path` lies below `root`; both already resolved. */
export function isInside(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function shorten(text: string): string {
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
