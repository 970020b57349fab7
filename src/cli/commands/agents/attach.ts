import { statSync } from "node:fs";
import { cellPaths } from "../../../cell/layout.ts";
import { isKeeperAlive, readExitOf, toShellStatus } from "../../../cell/life.ts";
import { requireLife } from "../../../pit/actions.ts";
import { agentLog } from "../../../pit/paths.ts";
import { defineCommand } from "../../command.ts";
import { follow } from "./logs.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Attaches to a running agent: prints its output from now on, and exits with its exit code. Ctrl-C detaches, and the " +
    "agent keeps running; lazarus stop ends it. A detached agent has no terminal, so it cannot read what you type; to " +
    "interact with it, run it in the foreground or in tmux.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {},
  examples: [["lazarus attach tidy-inbox", "follow its output until it exits or you press Ctrl-C"]],
  exits: ["missing"],
  async run(context, { args }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const life = requireLife(pitContext, mission);
    const log = agentLog(cellPaths(pitContext.config, mission).root);
    context.say(
      `attached to ${mission} (process ${life.agent.pid}); Ctrl-C detaches, the agent keeps running`,
    );
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    await follow(context, mission, log, size);
    if (isKeeperAlive(context.machine.processes, pitContext.config, mission)) {
      context.say(`detached from ${mission}, which keeps running; stop it with: lazarus stop ${mission}`);
      return 0;
    }
    const exit = readExitOf(pitContext.config, mission, life.epoch);
    return exit === undefined ? 1 : toShellStatus(exit);
  },
});
