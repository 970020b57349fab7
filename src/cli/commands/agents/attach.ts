import { statSync } from "node:fs";
import { cellPaths } from "../../../cell/layout.ts";
import { isKeeperAlive, readExitOf, readLife, toShellStatus } from "../../../cell/life.ts";
import type { MissionId } from "../../../cell/mission-id.ts";
import { requireLife } from "../../../pit/actions.ts";
import type { PitContext } from "../../../pit/context.ts";
import { readLogTail } from "../../../pit/death/log-tail.ts";
import { openSignalRelay } from "../../../pit/foreground.ts";
import { agentLog } from "../../../pit/paths.ts";
import type { MissionRecord } from "../../../pit/record/record.ts";
import { readRecord } from "../../../pit/record/store.ts";
import { parseDetachKeys } from "../../../pit/terminal/keys.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { windowSize } from "../../view-terminal.ts";
import { attachToLives, DEFAULT_DETACH_KEYS } from "./attach-to-lives.ts";
import { follow } from "./logs.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Attaches to an agent. One that was started in a terminal has its own terminal: you see its screen and type, " +
    "Ctrl-C included, several people can attach at once, and the size is that of the terminal used last. The detach keys " +
    "leave it running, and so does closing your terminal. When the agent is revived, you stay attached. For an agent that " +
    "has ended, the last output is printed. An agent without a terminal can only be watched: its output is printed from " +
    "now on, and Ctrl-C detaches. The exit code is the agent's, or 0 after detaching.",
  positionals: [MISSION_ARGUMENT],
  options: {
    "read-only": { type: "flag", short: "r", summary: "watch without typing or resizing" },
    "detach-keys": {
      type: "text",
      value: "KEYS",
      summary: `keys that detach, such as ctrl-p,ctrl-q (default ${DEFAULT_DETACH_KEYS})`,
    },
  },
  examples: [
    ["lazarus attach tidy-inbox", "use its terminal; Ctrl-\\ detaches"],
    ["lazarus attach tidy-inbox --read-only", "watch it"],
  ],
  exits: ["missing"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    const detachKeys = options["detach-keys"] ?? DEFAULT_DETACH_KEYS;
    if (parseDetachKeys(detachKeys) === undefined)
      throw usage("attach", "--detach-keys needs keys such as ctrl-p,ctrl-q");
    using pitContext = openCliPitContext(context);
    const record = readRecord(pitContext.config, mission);
    if (record?.terminal == null || record.life === null) return await watchLog(context, pitContext, mission);
    const { epoch } = record.life;
    const isAlive = isKeeperAlive(context.machine.processes, pitContext.config, mission);
    const life = isAlive ? readLife(pitContext.config, mission) : undefined;
    if (life === undefined) printLastScreen(context, pitContext, record);
    // Installed before the view, so that no signal is lost.
    using relay = openSignalRelay(context.machine.clock, { leaves: true });
    const first = { record, epoch: life?.epoch ?? epoch, life };
    const interrupts = "detaches";
    const readOnly = options["read-only"];
    return await attachToLives(context, pitContext, first, relay, { detachKeys, readOnly, interrupts });
  },
});

/** Prints the last output of a terminal that has ended. */
function printLastScreen(
  context: CliContext,
  { config }: PitContext,
  { mission, life }: MissionRecord,
): void {
  const log = agentLog(cellPaths(config, mission as MissionId).root);
  const lines = readLogTail(log, windowSize().rows * 2, { from: life?.log_bytes ?? 0, isTerminal: true });
  if (lines.length > 0) context.terminal.out(`${lines.join("\n")}\n`);
  context.say(`${mission} is not running; this was its last output`);
}

/** An agent without a terminal. */
async function watchLog(context: CliContext, pitContext: PitContext, mission: MissionId): Promise<number> {
  const life = requireLife(pitContext, mission);
  const log = agentLog(cellPaths(pitContext.config, mission).root);
  context.say(`attached to ${mission} (process ${life.agent.pid}); Ctrl-C detaches, the agent keeps running`);
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  await follow(context, mission, log, size);
  if (isKeeperAlive(context.machine.processes, pitContext.config, mission)) {
    context.say(`detached from ${mission}, which keeps running; stop it with: lazarus stop ${mission}`);
    return 0;
  }
  const exit = readExitOf(pitContext.config, mission, life.epoch);
  return exit === undefined ? 1 : toShellStatus(exit);
}
