// Which mission the MCP server serves: that of the agent that started it, or else of the protected directory or cell that it
// is started in (Codex does not pass the agent's variables on). Never chosen by the client: an agent can reach only its
// own work (INV-11).
import { isAbsolute, join, relative } from "node:path";
import { cellPaths } from "../../cell/layout.ts";
import { isInside, isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { worktreeOf } from "../../cell/worktree-record.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { CliContext } from "../context.ts";
import { missionAt } from "../here.ts";

export interface OwnMission {
  readonly mission: MissionId;
  readonly cellRoot: string;
  readonly worktree: string;
}

export function findOwnMission({ config, surroundings: { env, cwd } }: CliContext): OwnMission {
  const { missions_root: root } = config.config;
  const named = env.LAZARUS_MISSION ?? missionAt(root, cwd);
  if (named === undefined || !isMissionId(named))
    throw new LazarusError("MISSION_UNKNOWN", `${cwd} does not belong to a mission`, {
      hint: "lazarus protect . saves this directory; or start the agent with: lazarus run --here -- COMMAND",
    });
  const { root: cellRoot } = cellPaths(config.config, named);
  return { mission: named, cellRoot, worktree: worktreeOf(cellRoot) };
}

/** A path of the client, in the checkpoint's terms: `worktree/…`. Only files of the worktree can be reached. */
export function cellPathOf({ worktree, mission }: OwnMission, path: string): string {
  const absolute = isAbsolute(path) ? path : join(worktree, path);
  const below = relative(worktree, absolute);
  if (below !== "" && isInside(worktree, absolute) && !path.includes("\0")) return `worktree/${below}`;
  throw new LazarusError("USAGE", `${JSON.stringify(path)} is not a file in ${worktree}`, {
    hint: `to restore everything, a person runs: lazarus restore ${mission} CHECKPOINT --stop`,
  });
}
