import { startAgainCommand, stopMission } from "../../../pit/stop.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Stops the agent. It is not revived, not even after a reboot, until you use revive or run. A checkpoint is " +
    "taken first; then the agent gets SIGTERM and, after a grace period, SIGKILL with all its child processes. A second " +
    "checkpoint saves what it wrote before it exited. A stop with a shorter grace period overrides one that is waiting.",
  positionals: [MISSION_ARGUMENT],
  options: {
    "no-checkpoint": { type: "flag", summary: "do not take a checkpoint before SIGTERM" },
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
    const { wasRunning, checkpoint, checkpointBefore, checkpointError, killed } = result;
    context.emit(
      "stop/1",
      {
        mission_id: mission,
        was_running: wasRunning,
        checkpoint_id: checkpoint,
        checkpoint_before_id: checkpointBefore,
        killed,
      },
      () => "",
    );
    if (checkpointError !== null) {
      const before = checkpointBefore === null ? "" : `; its state before SIGTERM is in ${checkpointBefore}`;
      context.warn(`the checkpoint after its exit failed: ${checkpointError}${before}`);
    }
    const how = wasRunning
      ? killed
        ? "is stopped (SIGKILL was needed)"
        : "is stopped"
      : "was not running; it will not be revived";
    context.say(`${mission} ${how}${checkpoint === null ? "" : `; saved as ${checkpoint}`}`);
    context.say(`start it again with: ${startAgainCommand(result.record)}`);
    return 0;
  },
});
