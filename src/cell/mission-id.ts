// Mission ids: checked before a path is built from one, and again against what the path resolves to. An id never
// names a place outside the missions root, through links included.
import { realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";

export type MissionId = string & { readonly __brand: "MissionId" };

const SHAPE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export function isMissionId(text: string): text is MissionId {
  return SHAPE.test(text) && !text.includes("..");
}

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
  let resolvedRoot: string;
  let resolved: string;
  try {
    resolvedRoot = realpathSync(missionsRoot);
    resolved = realpathSync(root);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return root;
    throw error;
  }
  if (!isInside(resolvedRoot, resolved)) {
    throw new LazarusError(
      "MISSION_OUTSIDE_ROOT",
      `mission ${mission} is a link to ${resolved}, outside ${resolvedRoot}`,
      {
        hint: `ls -l ${root}, and replace the link with a real directory`,
      },
    );
  }
  return root;
}

/** Whether `path` lies below `root`; both already resolved. */
export function isInside(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function shorten(text: string): string {
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
