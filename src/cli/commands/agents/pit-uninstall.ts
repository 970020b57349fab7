import { planServiceUninstall } from "../../../service/plan.ts";
import { pitUnit } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, lookOnly, runProgram } from "../flows/install-options.ts";
import { UNIT_OPTIONS, UNIT_POSITIONALS, UNIT_REPORT, unitRequestOf } from "./pit-units.ts";

export const command = defineCommand({
  about:
    "Takes away what pit install put in place, and nothing else. The pit ends; agents that run go on under their " +
    "keepers, unwatched. Cells, checkpoints and settings stay.",
  positionals: UNIT_POSITIONALS,
  options: UNIT_OPTIONS,
  examples: [
    ["lazarus pit uninstall systemd", "take it back"],
    ["lazarus pit uninstall cron --dry-run", "what would be removed?"],
  ],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    const dryRun = options["dry-run"];
    const request = unitRequestOf(context, "pit uninstall", args.scheduler, options);
    return carryOutOrShow(
      context,
      planServiceUninstall(pitUnit(request), request.scheduler, dryRun ? lookOnly : runProgram),
      dryRun,
      UNIT_REPORT,
    );
  },
});
