// Whether an agent works in a directory that no checkpoint holds (INV-6). Writes nothing.
import { join } from "node:path";
import type { Config } from "../cell/config.ts";
import { isInside } from "../cell/mission-id.ts";
import { findProtecting } from "../cell/worktree-record.ts";
import { resolvePath } from "../snapshot/mission-context.ts";

/** The directory, if it is neither in the mission's cell nor in the worktree of any mission. Null: the default. */
export function findUnprotected(config: Config, mission: string, cwd: string | null): string | null {
  if (cwd === null) return null;
  const [path, root] = [resolvePath(cwd), resolvePath(join(config.missions_root, mission))];
  if (path === root || isInside(root, path)) return null;
  try {
    return findProtecting(config.missions_root, path) === undefined ? cwd : null;
  } catch {
    // A damaged record of some mission: what needs it reports it.
    return cwd;
  }
}
