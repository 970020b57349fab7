import { stopMission } from "../../../pit/actions.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Stops the agent. It is not revived, not even after a reboot, until you use revive or run. A checkpoint is " +
    "taken first; then the agent and all its child processes get SIGTERM and, after a grace period, SIGKILL.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    "no-checkpoint": { type: "flag", summary: "do not take a checkpoint first" },
    grace: { type: "number", value: "SECONDS", summary: "time between SIGTERM and SIGKILL (default 10)" },
  },
  examples: [
    ["lazarus stop tidy-inbox", "take a checkpoint, then stop"],
    ["lazarus stop tidy-inbox --grace 0 --no-checkpoint", "stop immediately"],
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
    if (checkpointError !== null) context.warn(`could not take a checkpoint first: ${checkpointError}`);
    const how = wasRunning
      ? killed
        ? "is stopped (SIGKILL was needed)"
        : "is stopped"
      : "was not running; it will not be revived";
    context.say(`${mission} ${how}${checkpoint === null ? "" : `; saved as ${checkpoint}`}`);
    context.say(`start it again with: lazarus revive ${mission}`);
    return 0;
  },
});
