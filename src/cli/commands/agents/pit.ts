import { openPit } from "../../../pit/supervise/daemon.ts";
import { defineCommand } from "../../command.ts";
import { findUnusedKeys } from "../../settings.ts";
import { openCliPitContext } from "./open-pit.ts";
import { openPitServices } from "./pit-services.ts";

export const command = defineCommand({
  about:
    "Runs the pit in the foreground. It watches all agents, including those that are already running; when one dies, it " +
    "takes a checkpoint and revives the agent according to the mission's revive mode. Only one pit can run per home. On " +
    "Ctrl-C or SIGTERM it takes a checkpoint of each running agent's cell and exits; the agents keep running, and the " +
    "next pit continues to watch them.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus pit", "run in the foreground"],
    ["lazarus job check lazarus_pit", "check from cron that the pit is running"],
  ],
  exits: ["busy", "machine", "unsupported"],
  async run(context) {
    using pitContext = openCliPitContext(context, { isDaemon: true });
    using pit = await openPit(pitContext);
    for (const line of [...context.config.warnings, ...findUnusedKeys(context.config)]) context.warn(line);
    await using _ = openPitServices(pitContext, pit.live);
    await pit.run(context.signal);
    return 0;
  },
});
