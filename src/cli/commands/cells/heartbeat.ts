import { refuseFenced } from "../../../cell/fence.ts";
import { beat } from "../../../cell/heartbeat.ts";
import { defineCommand } from "../../command.ts";
import { harmless } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Writes the mission's heartbeat: the proof of life that the scan and the pit look at. An agent calls it between " +
    "its steps. Fields that other tools keep in the file stay. A beat after a silence longer than stale_after_seconds " +
    "is entered in the event log as a gap. An agent whose successor has been started is refused.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: { status: { type: "text", value: "TEXT", summary: "what it is doing; stays until changed" } },
  examples: [
    ["lazarus heartbeat tidy-inbox", "still alive"],
    ["lazarus heartbeat tidy-inbox --status sorting", "alive, and sorting"],
  ],
  exits: ["missing", "conflict", "damaged", "machine"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const { config } = context.config;
    refuseFenced(() => config, context.surroundings.env, mission);
    const { heartbeat, path, gapSeconds, replaced } = beat(context.machine, config, mission, options.status);
    if (replaced !== undefined)
      context.warn(`the heartbeat ${path} could not be read (${replaced}); it has been replaced`);
    if (gapSeconds !== null && gapSeconds > config.stale_after_seconds) {
      await context.record({ kind: "heartbeat-gap", mission, data: { gap_seconds: Math.floor(gapSeconds) } });
    }
    context.emit("heartbeat/1", { ...heartbeat, path }, () => "");
    if (context.terminal.errIsTerminal) context.say(`${mission} is alive: ${harmless(heartbeat.status)}`);
    return 0;
  },
});
