import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isMissionId, type MissionId } from "../../../cell/mission-id.ts";
import { listWorktreeRecords } from "../../../cell/worktree-record.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { resolvePath } from "../../../snapshot/mission-context.ts";
import { releaseDirectory } from "../../../snapshot/operations/protect.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { openCliMission } from "../../open-mission.ts";
import { formatCount } from "../../render/format.ts";
import { refuseInsideLife } from "../agents/refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Undoes lazarus protect and run --in: the directory is no longer a mission's worktree. It stays exactly as it is, and the " +
    "checkpoints stay: restore --to writes them elsewhere, and lazarus protect makes the directory the worktree again.",
  positionals: [{ name: "directory", summary: "the directory, or the id of its mission", here: true }],
  options: {},
  examples: [
    ["lazarus release ~/src/app", "by directory"],
    ["lazarus release app", "by mission"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args }) {
    const mission = findMission(context, args.directory);
    refuseInsideLife(context, "release");
    using opened = openCliMission(context, mission);
    const { path } = await releaseDirectory(opened);
    const checkpoints = opened.vault.list().length;
    context.emit("release/1", { mission_id: mission, worktree: path, checkpoints }, () => `${path}\n`);
    context.say(
      checkpoints === 0
        ? `${path} was not changed, and ${mission} has no checkpoints`
        : `${path} was not changed; ${formatCount(checkpoints, "checkpoint")} of ${mission} kept in ${opened.vault.root}; ` +
            `to restore one elsewhere: lazarus restore ${mission} --to DIR`,
    );
    return 0;
  },
});

/** The id of a mission takes precedence over a directory of the same name. */
function findMission(context: CliContext, given: string): MissionId {
  const records = listWorktreeRecords(context.config.config.missions_root).filter(
    (each) => each.released_ms === null,
  );
  const path = resolvePath(resolve(context.surroundings.cwd, given));
  const found =
    records.find(({ mission_id }) => mission_id === given) ?? records.find((record) => record.path === path);
  if (found !== undefined) return found.mission_id as MissionId;
  if (isMissionId(given) && !existsSync(path)) return context.mission(given);
  throw new LazarusError("NOT_FOUND", `${path} is not the worktree of a mission`, {
    hint: "lazarus status --json, to list the worktree of each mission",
    details: { path },
  });
}
