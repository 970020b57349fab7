import { pauseMission } from "../../../pit/actions.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Stops every process of the agent where it is (SIGSTOP). It keeps its memory and goes on with revive, as if nothing " +
    "had been, except that connections may have timed out. Like stop, a pause is a latch: an agent that dies while it is " +
    "paused is not revived.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {},
  examples: [
    ["lazarus pause tidy-inbox", "hold on"],
    ["lazarus revive tidy-inbox", "go on"],
  ],
  exits: ["missing", "busy"],
  async run(context, { args }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const { processes } = await pauseMission(pitContext, mission);
    context.emit("pause/1", { mission_id: mission, processes }, () => "");
    context.say(`${mission} is paused (${processes} processes); go on with: lazarus revive ${mission}`);
    return 0;
  },
});
