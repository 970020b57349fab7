import { planServiceInstall } from "../../../service/plan.ts";
import { pitUnit } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, runForDryRun, runProgram } from "../flows/install-options.ts";
import { UNIT_OPTIONS, UNIT_POSITIONALS, UNIT_REPORT, unitRequestOf } from "./pit-units.ts";

export const command = defineCommand({
  about:
    "Installs the pit as a service: a systemd unit, a launchd job or a crontab entry. The service starts at boot and " +
    "restarts when it exits; agents keep running while it restarts. Under systemd it also reports readiness and a " +
    "watchdog signal. Running it again changes nothing; files that Lazarus did not write are left alone.",
  positionals: UNIT_POSITIONALS,
  options: UNIT_OPTIONS,
  examples: [
    ["lazarus pit install systemd --dry-run", "show what would be written and run"],
    ["lazarus pit install systemd --user", "for your own user"],
    ["sudo lazarus pit install systemd --system --run-as agents", "for the whole machine"],
  ],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    const dryRun = options["dry-run"];
    const request = unitRequestOf(context, "pit install", args.scheduler, options);
    const actions = planServiceInstall(
      pitUnit(request),
      request.scheduler,
      dryRun ? runForDryRun : runProgram,
    );
    const exit = carryOutOrShow(context, actions, dryRun, UNIT_REPORT);
    if (!dryRun && request.scheduler === "systemd" && request.scope === "user")
      context.say("to keep it running after you log out: loginctl enable-linger");
    return exit;
  },
});
