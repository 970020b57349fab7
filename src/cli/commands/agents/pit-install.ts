import { planServiceInstall } from "../../../service/plan.ts";
import { pitUnit } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, lookOnly, runProgram } from "../flows/install-options.ts";
import { UNIT_OPTIONS, UNIT_POSITIONALS, UNIT_REPORT, unitRequestOf } from "./pit-units.ts";

export const command = defineCommand({
  about:
    "Makes the pit a service: a systemd unit, a launchd job or a line in your crontab. It is started at boot and " +
    "whenever it ends; agents outlive its restarts. systemd also hears from it that it is ready and alive, and starts " +
    "it again when it hangs. Doing it again changes nothing; files that Lazarus did not write are left alone.",
  positionals: UNIT_POSITIONALS,
  options: UNIT_OPTIONS,
  examples: [
    ["lazarus pit install systemd --dry-run", "what would be written and run?"],
    ["lazarus pit install systemd --user", "for your own agents"],
    ["sudo lazarus pit install systemd --system --run-as agents", "for a machine of agents"],
  ],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    const dryRun = options["dry-run"];
    const request = unitRequestOf(context, "pit install", args.scheduler, options);
    const actions = planServiceInstall(pitUnit(request), request.scheduler, dryRun ? lookOnly : runProgram);
    const exit = carryOutOrShow(context, actions, dryRun, UNIT_REPORT);
    if (!dryRun && request.scheduler === "systemd" && request.scope === "user")
      context.say("so that it runs when you are logged out, too: loginctl enable-linger");
    return exit;
  },
});
