import { isKnownMission, unknownMission } from "../../../cell/known-missions.ts";
import { cellPaths } from "../../../cell/layout.ts";
import { openHistory } from "../../../effects/history.ts";
import { describeEffect, effectsAfter, unknownEffects } from "../../../effects/notes.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Lists what a mission did to the outside world: commands of flows, tool calls of durable runs, and tool calls of agent " +
    "CLIs that were cut off. The list is never restored. An unknown outcome means that it may or may not have happened.",
  positionals: [MISSION_ARGUMENT],
  options: { unknown: { type: "flag", summary: "only those with an unknown outcome" } },
  examples: [["lazarus effects tidy-inbox --unknown", "what may or may not have happened"]],
  exits: ["missing", "machine"],
  run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const { config } = context.config;
    if (!isKnownMission(config, mission)) throw unknownMission(config, mission);
    const fold = openHistory(context.machine, cellPaths(config, mission).root).read();
    const effects = options.unknown ? unknownEffects(fold) : effectsAfter(fold, 0);
    context.emit("effects/1", { mission_id: mission, effects, damaged_lines: fold.damaged }, () =>
      effects.map((effect) => `${escapeControls(describeEffect(effect))}\n`).join(""),
    );
    if (effects.length === 0) context.say(`${mission}: no effects on record`);
    if (fold.damaged > 0) context.warn(`${formatCount(fold.damaged, "line")} of the history cannot be read`);
    return 0;
  },
});
