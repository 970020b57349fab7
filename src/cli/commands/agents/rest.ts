import { REST_SECONDS, restMission } from "../../../pit/actions.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Asks the agent to end in its own time: SIGTERM, and a minute before SIGKILL. What it leaves is saved as it is found " +
    "then. It stays at rest, over reboots, until revive.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    grace: { type: "number", value: "SECONDS", summary: `wait so long before SIGKILL (${REST_SECONDS})` },
  },
  examples: [["lazarus rest tidy-inbox", "over the weekend"]],
  exits: ["missing", "machine", "busy"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const result = await restMission(pitContext, mission, { graceSeconds: options.grace });
    const { wasRunning, checkpoint, killed } = result;
    context.emit(
      "rest/1",
      { mission_id: mission, was_running: wasRunning, checkpoint_id: checkpoint, killed },
      () => "",
    );
    context.say(`${mission} is at rest${checkpoint === null ? "" : `; saved as ${checkpoint}`}`);
    context.say(`bring it back with: lazarus revive ${mission}`);
    return 0;
  },
});
