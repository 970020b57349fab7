import { ERROR_KINDS } from "../../../platform/errors.ts";
import { forkMission } from "../../../snapshot/operations/fork.ts";
import { defineCommand } from "../../command.ts";
import { openCliMission, openKnownMission } from "../../open-mission.ts";
import { describeRef, sayFlaws } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Makes a new mission from a checkpoint of another one: its own cell, its own vault, the same content. The vaults " +
    "share the stored bytes. The mission that is forked is not touched.",
  positionals: [
    { name: "mission", summary: "id of the mission to fork" },
    { name: "new-mission", summary: "id of the new one" },
  ],
  options: {
    at: { type: "text", value: "CHECKPOINT", summary: "id, beginning of one, latest, or a time (latest)" },
  },
  examples: [
    ["lazarus fork tidy-inbox tidy-inbox-2", "try another way from where it stands"],
    ["lazarus fork tidy-inbox what-if --at '2h ago'", "from where it stood two hours ago"],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "busy"],
  async run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    using fork = openCliMission(context, context.mission(args["new-mission"]));
    const { from, capture, flaws, warnings } = await forkMission(missionContext, fork, {
      at: options.at,
      signal: context.signal,
    });
    fork.endProgress();
    context.emit(
      "fork/1",
      {
        mission_id: fork.mission,
        root: fork.cellRoot,
        checkpoint_id: capture.ref.id,
        forked_from: { mission_id: missionContext.mission, checkpoint_id: from.id },
        flaws,
        warnings,
      },
      () => `${fork.cellRoot}\n`,
    );
    context.say(
      `${fork.mission} is a fork of ${missionContext.mission} at ${describeRef(from)}; its first checkpoint is ${capture.ref.id}`,
    );
    for (const warning of warnings) context.warn(warning);
    sayFlaws(context, "not forked exactly:", flaws);
    return flaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
  },
});
