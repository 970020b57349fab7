import { pauseMission } from "../../../pit/actions.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { formatCount } from "../../render/format.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Suspends every process of the agent (SIGSTOP). The agent keeps its memory and continues with revive, although its " +
    "network connections may have timed out. Like stop, a pause stays in effect across reboots: an agent that dies while " +
    "paused is not revived.",
  positionals: [MISSION_ARGUMENT],
  options: {},
  examples: [
    ["lazarus pause tidy-inbox", "suspend the agent"],
    ["lazarus revive tidy-inbox", "continue"],
  ],
  exits: ["missing", "busy"],
  async run(context, { args }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const { processes } = await pauseMission(pitContext, mission);
    context.emit("pause/1", { mission_id: mission, processes }, () => "");
    context.say(
      `${mission} is paused (${formatCount(processes, "process", "processes")}); continue with: lazarus revive ${mission}`,
    );
    return 0;
  },
});
