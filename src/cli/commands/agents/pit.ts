import { openPit } from "../../../pit/supervise/daemon.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";
import { openPitServices } from "./pit-services.ts";

export const command = defineCommand({
  about:
    "Opens the pit in the foreground: it adopts the agents that live, notices when one is gone, saves the scene, and " +
    "brings it back by the mission's revive mode. One pit per home; a second one is refused. Ended with Ctrl-C or " +
    "SIGTERM it takes a checkpoint of each live agent's cell; the agents themselves go on under their keepers, and the " +
    "next pit adopts them.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus pit", "in the foreground"],
    ["lazarus job check lazarus_pit", "is it alive? (from cron)"],
  ],
  exits: ["busy", "machine", "unsupported"],
  async run(context) {
    using pitContext = openCliPitContext(context);
    using pit = await openPit(pitContext);
    await using _ = openPitServices(pitContext);
    await pit.run(context.signal);
    return 0;
  },
});
