import { planUninstall } from "../../../flow/install/install.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { wasLeftAlone } from "../../../service/plan.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow, INSTALL_OPTIONS, lookOnly, requestOf, runProgram } from "./install-options.ts";

export const command = defineCommand({
  about:
    "Takes away what flow install put in place, and nothing else: the section between the markers in AGENTS.md, the " +
    "scheduled self-check of this workspace, the skill folder. Workflows stay.",
  positionals: [],
  options: INSTALL_OPTIONS,
  examples: [
    ["lazarus flow uninstall --agents-md --skill", "take both back"],
    ["lazarus flow uninstall --schedule systemd --dry-run", "what would be removed?"],
  ],
  exits: ["degraded", "missing", "conflict", "machine", "unsupported"],
  run(context, { options }) {
    const dryRun = options["dry-run"];
    const request = requestOf(context, "flow uninstall", options);
    const actions = planUninstall(request, dryRun ? lookOnly : runProgram);
    const code = carryOutOrShow(context, actions, dryRun);
    return code === 0 && wasLeftAlone(actions) ? ERROR_KINDS.degraded.exit : code;
  },
});
