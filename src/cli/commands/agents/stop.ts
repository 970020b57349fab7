import { stopMission } from "../../../pit/actions.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Ends the agent and leaves it ended: a stop is a latch that survives reboots, and only you lift it, with revive or " +
    "run. First a checkpoint is taken, then the agent gets SIGTERM, and after a grace SIGKILL, together with " +
    "everything that it started.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    "no-checkpoint": { type: "flag", summary: "take no checkpoint before" },
    grace: { type: "number", value: "SECONDS", summary: "wait so long before SIGKILL (10)" },
  },
  examples: [
    ["lazarus stop tidy-inbox", "save it, then end it"],
    ["lazarus stop tidy-inbox --grace 0 --no-checkpoint", "at once"],
  ],
  exits: ["missing", "machine", "busy"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const result = await stopMission(pitContext, mission, {
      checkpoint: !options["no-checkpoint"],
      graceSeconds: options.grace,
    });
    const { wasRunning, checkpoint, checkpointError, killed } = result;
    context.emit(
      "stop/1",
      { mission_id: mission, was_running: wasRunning, checkpoint_id: checkpoint, killed },
      () => "",
    );
    if (checkpointError !== null) context.warn(`no checkpoint was taken before: ${checkpointError}`);
    const how = wasRunning
      ? killed
        ? "is stopped; SIGKILL was needed"
        : "is stopped"
      : "was not running, and stays so";
    context.say(`${mission} ${how}${checkpoint === null ? "" : `; saved as ${checkpoint}`}`);
    context.say(`bring it back with: lazarus revive ${mission}`);
    return 0;
  },
});
