import { resolve } from "node:path";
import { pitOwner } from "../../../pit/view.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { takeCheckpoint } from "../../../snapshot/operations/checkpoint.ts";
import { missionOf, resolveDirectory } from "../../../snapshot/operations/protect.ts";
import { defineCommand } from "../../command.ts";
import { openCliMission } from "../../open-mission.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { refuseInsideLife } from "../agents/refuse-inside-life.ts";
import { protectAs } from "../agents/run-place.ts";

export const command = defineCommand({
  about:
    "Makes a directory the worktree of a mission and takes a first checkpoint, without starting an agent. Checkpoints hold " +
    "all its files, including those that git ignores or does not track; a restore puts them back in place. Nothing is written " +
    "into the directory, and a git repository in it gets no commits. The mission is named after the directory unless --mission " +
    "names one. A directory that was moved stays with its mission. lazarus release undoes this.",
  positionals: [{ name: "directory", summary: "an existing directory" }],
  options: {
    mission: { type: "text", value: "ID", summary: "id of the mission (default: the directory's name)" },
  },
  examples: [
    ["lazarus protect ~/src/app", "as mission app"],
    ["lazarus protect ~/src/app-v2 --mission app", "another copy of the directory, in its place"],
  ],
  exits: ["degraded", "missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    const directory = resolveDirectory(resolve(context.surroundings.cwd, args.directory));
    const mission =
      options.mission === undefined
        ? missionOf(context.config.config, directory)
        : context.mission(options.mission);
    refuseInsideLife(context, "protect");
    const change = await protectAs(context, mission, directory);
    using opened = openCliMission(context, mission);
    const { ref, flaws } = await takeCheckpoint(opened, {
      reason: "manual",
      message: change === "same" ? null : `first checkpoint of ${directory}`,
      onlyIfChanged: true,
    });
    opened.endProgress();
    context.emit(
      "protect/1",
      { mission_id: mission, worktree: directory, change, checkpoint_id: ref.id, flaws },
      () => `${mission}\n`,
    );
    context.say(
      `saved as checkpoint ${ref.id}; start an agent there with: lazarus run ${mission} -- COMMAND`,
    );
    for (const line of describeFlaws(flaws)) context.say(line);
    if (pitOwner({ machine: context.machine, config: context.config.config }) === undefined)
      context.say("no pit is running, so later changes are saved only after one is started: lazarus pit");
    return flaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
  },
});
