import { planServiceUninstall } from "../../../service/plan.ts";
import { pitUnit } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, runForDryRun, runProgram } from "../flows/install-options.ts";
import { UNIT_OPTIONS, UNIT_POSITIONALS, UNIT_REPORT, unitRequestOf } from "./pit-units.ts";

export const command = defineCommand({
  about:
    "Removes what pit install added, and nothing else. The pit stops; running agents keep running unsupervised. Cells, " +
    "checkpoints and settings are not touched.",
  positionals: UNIT_POSITIONALS,
  options: UNIT_OPTIONS,
  examples: [
    ["lazarus pit uninstall systemd", "remove the service"],
    ["lazarus pit uninstall cron --dry-run", "show what would be removed"],
  ],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    const dryRun = options["dry-run"];
    const request = unitRequestOf(context, "pit uninstall", args.scheduler, options);
    return carryOutOrShow(
      context,
      planServiceUninstall(pitUnit(request), request.scheduler, dryRun ? runForDryRun : runProgram),
      dryRun,
      UNIT_REPORT,
    );
  },
});
