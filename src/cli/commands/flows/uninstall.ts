import { planUninstall } from "../../../flow/install/install.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { wasLeftAlone } from "../../../service/plan.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, INSTALL_OPTIONS, requestOf, runForDryRun, runProgram } from "./install-options.ts";

export const command = defineCommand({
  about:
    "Removes what flow install added, and nothing else: the section between the markers in AGENTS.md, the scheduled " +
    "self-check of this workspace and the skill folder. Workflows are kept.",
  positionals: [],
  options: INSTALL_OPTIONS,
  examples: [
    ["lazarus flow uninstall --agents-md --skill", "remove both"],
    ["lazarus flow uninstall --schedule systemd --dry-run", "show what would be removed"],
  ],
  exits: ["degraded", "missing", "conflict", "machine", "unsupported"],
  run(context, { options }) {
    const dryRun = options["dry-run"];
    const request = requestOf(context, "flow uninstall", options);
    const actions = planUninstall(request, dryRun ? runForDryRun : runProgram);
    const code = carryOutOrShow(context, actions, dryRun);
    return code === 0 && wasLeftAlone(actions) ? ERROR_KINDS.degraded.exit : code;
  },
});
