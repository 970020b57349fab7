import { statSync } from "node:fs";
import { cellPaths } from "../../../cell/layout.ts";
import { isKeeperAlive, readExitOf, toShellStatus } from "../../../cell/life.ts";
import { requireLife } from "../../../pit/actions.ts";
import { openSignalRelay } from "../../../pit/foreground.ts";
import { agentLog } from "../../../pit/paths.ts";
import { defineCommand } from "../../command.ts";
import { follow } from "./logs.ts";
import { openCliPitContext } from "./open-pit.ts";

const DETACH_HINT = "detach with Ctrl-\\; Ctrl-C goes to the agent";

export const command = defineCommand({
  about:
    "Attaches to a running agent: prints its output from now on, forwards Ctrl-C and other signals to it, and exits with " +
    "its exit code. Ctrl-\\ (SIGQUIT) detaches. A detached agent has no terminal, so it cannot read what you type; to " +
    "interact with it, run it in the foreground or in tmux.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {},
  examples: [["lazarus attach tidy-inbox", "follow its output; Ctrl-C interrupts the agent"]],
  exits: ["missing"],
  async run(context, { args }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const life = requireLife(pitContext, mission);
    const log = agentLog(cellPaths(pitContext.config, mission).root);
    context.say(`attached to ${mission} (process ${life.agent.pid}); ${DETACH_HINT}`);
    const left = new AbortController();
    using relay = openSignalRelay({ leave: () => left.abort() });
    relay.to(life.agent.pid);
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    await follow(context, mission, log, size, left.signal);
    if (isKeeperAlive(context.machine.processes, pitContext.config, mission)) {
      context.say(`detached from ${mission}; it keeps running`);
      return 0;
    }
    const exit = readExitOf(pitContext.config, mission, life.epoch);
    return exit === undefined ? 1 : toShellStatus(exit);
  },
});
