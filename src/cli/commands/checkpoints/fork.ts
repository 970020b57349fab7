import { ERROR_KINDS } from "../../../platform/errors.ts";
import { forkMission } from "../../../snapshot/operations/fork.ts";
import { defineCommand } from "../../command.ts";
import { openCliMission, openKnownMission } from "../../open-mission.ts";
import { describeRef, NOT_SAVED, sayDoneSince, sayFlaws } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Creates a new mission from a checkpoint of another one, with its own cell and vault and the same content. The vaults " +
    "share stored data. The original mission is not touched.",
  positionals: [
    { name: "mission", summary: "id of the mission to fork (default: of this directory)", here: true },
    { name: "new-mission", summary: "id of the new mission" },
  ],
  options: {
    at: {
      type: "text",
      value: "CHECKPOINT",
      summary: "id or a part of it, latest, or a time: 10m, 14:30 (default latest)",
    },
  },
  examples: [
    ["lazarus fork tidy-inbox tidy-inbox-2", "fork the latest checkpoint"],
    ["lazarus fork tidy-inbox what-if --at '2h ago'", "fork its state of two hours ago"],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "busy"],
  async run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    using fork = openCliMission(context, context.mission(args["new-mission"]));
    const { from, capture, flaws, notSaved, warnings, effects } = await forkMission(missionContext, fork, {
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
        effects_identity: effects.identity,
        done_since: effects.doneSince,
        flaws,
        not_saved: notSaved,
        warnings,
      },
      () => `${fork.cellRoot}\n`,
    );
    context.say(
      `${fork.mission} is a fork of ${missionContext.mission} at ${describeRef(from)}; first checkpoint: ${capture.ref.id}`,
    );
    context.say(
      `it has a copy of the effect history of ${missionContext.mission}, and its own identity: the keys of its tool calls end in @${effects.identity}`,
    );
    sayDoneSince(context, effects.doneSince);
    for (const warning of warnings) context.warn(warning);
    sayFlaws(context, "not forked exactly:", flaws);
    sayFlaws(context, NOT_SAVED, notSaved);
    return flaws.length + notSaved.length > 0 ? ERROR_KINDS.degraded.exit : 0;
  },
});
