import { liveStatusFile } from "../../../pit/live/live-status.ts";
import { wakeFile } from "../../../pit/supervise/wake-file.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { type Deletion, deleteMission, planDeletion } from "../../../snapshot/operations/delete-mission.ts";
import { defineCommand } from "../../command.ts";
import { openCliMission, refuseLostVault } from "../../open-mission.ts";
import { formatCount } from "../../render/format.ts";
import { refuseInsideLife } from "../agents/refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Deletes a mission for good: its cell with all files, its checkpoints, its effect history, and the command and " +
    "environment of its agent. A directory in place (lazarus protect, run --here) is not touched. Without --yes it prints " +
    "what it would delete, and exits. The name can be used again.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    yes: { type: "flag", short: "y", summary: "delete it" },
    "dry-run": { type: "flag", short: "n", summary: "print what would be deleted, delete nothing" },
  },
  examples: [
    ["lazarus delete book", "print what would be deleted"],
    ["lazarus export book -o book.tar.gz && lazarus delete book --yes", "keep one archive"],
  ],
  exits: ["missing", "conflict", "busy", "machine", "damaged"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    refuseInsideLife(context, "delete");
    using opened = openCliMission(context, mission);
    refuseLostVault(context, opened);
    const isReal = options.yes && !options["dry-run"];
    const { config } = context.config;
    const others = [liveStatusFile(config, mission), wakeFile(config, mission)];
    const deletion = isReal ? await deleteMission(opened, others) : planDeletion(opened, others);
    if (!isReal && !options["dry-run"]) {
      context.say(describe(deletion, false).trimEnd());
      throw new LazarusError("NOT_CONFIRMED", `${mission} was not deleted`, {
        hint: `lazarus delete ${mission} --yes deletes it for good`,
        details: { mission_id: mission, ...deletion },
      });
    }
    const { paths, checkpoints, kept } = deletion;
    context.emit("delete/1", { mission_id: mission, deleted: isReal, paths, checkpoints, kept }, () =>
      describe(deletion, isReal),
    );
    return 0;
  },
});

function describe({ paths, checkpoints, kept }: Deletion, isReal: boolean): string {
  const verb = isReal ? "deleted" : "would delete";
  const isBelowAnother = (path: string) => paths.some((other) => path.startsWith(`${other}/`));
  const lines = paths.filter((path) => !isBelowAnother(path)).map((path) => `${verb} ${path}\n`);
  if (checkpoints > 0) lines.push(`${verb} ${formatCount(checkpoints, "checkpoint")}\n`);
  if (kept !== null) lines.push(`${isReal ? "kept" : "would keep"} the directory ${kept}\n`);
  return lines.join("");
}
