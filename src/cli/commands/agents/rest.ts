import { REST_SECONDS, restMission, startAgainCommand } from "../../../pit/stop.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Asks the agent to exit: SIGTERM, then SIGKILL after a minute. A checkpoint is taken after it has exited. The agent " +
    "stays at rest, even across reboots, until it is revived.",
  positionals: [MISSION_ARGUMENT],
  options: {
    grace: {
      type: "number",
      value: "SECONDS",
      summary: `time between SIGTERM and SIGKILL (default ${REST_SECONDS})`,
    },
  },
  examples: [["lazarus rest tidy-inbox", "let it exit, to be revived later"]],
  exits: ["missing", "machine", "busy"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const result = await restMission(pitContext, mission, { graceSeconds: options.grace });
    const { wasRunning, checkpoint, checkpointError, killed } = result;
    context.emit(
      "rest/1",
      { mission_id: mission, was_running: wasRunning, checkpoint_id: checkpoint, killed },
      () => "",
    );
    if (checkpointError !== null) context.warn(`the checkpoint after its exit failed: ${checkpointError}`);
    context.say(`${mission} is at rest${checkpoint === null ? "" : `; saved as ${checkpoint}`}`);
    context.say(`start it again with: ${startAgainCommand(result.record)}`);
    return 0;
  },
});
