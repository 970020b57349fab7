import { epochOf } from "../../../cell/fence.ts";
import { beat } from "../../../cell/heartbeat.ts";
import { defineCommand } from "../../command.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Writes the heartbeat of a mission, which scan and the pit use to tell that its agent is alive. Agents call it " +
    "between steps. Fields that other tools added to the file are kept. A heartbeat after more than stale_after_seconds " +
    "of silence is recorded in the event log. An agent that has been replaced by a later life is refused.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    status: { type: "text", value: "TEXT", summary: "what the agent is doing; kept until changed" },
  },
  examples: [
    ["lazarus heartbeat tidy-inbox", "record a heartbeat"],
    ["lazarus heartbeat tidy-inbox --status sorting", "with a status"],
  ],
  exits: ["missing", "conflict", "damaged", "machine"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const { config } = context.config;
    const { heartbeat, path, gapSeconds, replaced } = beat(context.machine, config, mission, {
      status: options.status,
      epoch: epochOf(context.surroundings.env, mission),
    });
    if (replaced !== undefined)
      context.warn(`the heartbeat ${path} was unreadable (${replaced}) and has been replaced`);
    if (gapSeconds !== null && gapSeconds > config.stale_after_seconds) {
      await context.record({ kind: "heartbeat-gap", mission, data: { gap_seconds: Math.floor(gapSeconds) } });
    }
    context.emit("heartbeat/1", { ...heartbeat, path }, () => "");
    if (context.terminal.errIsTerminal)
      context.say(`${mission} is alive: ${escapeControls(heartbeat.status)}`);
    return 0;
  },
});
