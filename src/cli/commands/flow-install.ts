import { planInstall, wasLeftAlone } from "../../flow/install/install.ts";
import { ERROR_KINDS } from "../../platform/errors.ts";
import { defineCommand } from "../command.ts";
import { carryOutOrShow, INSTALL_OPTIONS, lookOnly, requestOf, runProgram } from "../flow-install.ts";

export const command = defineCommand({
  about:
    "Puts the start-up rule into AGENTS.md (between markers; the rest of the file stays), the self-check into a scheduler, " +
    "and a skill folder into the workspace. Doing it again refreshes what has changed. Files that Lazarus did not write " +
    "are left alone.",
  positionals: [],
  options: INSTALL_OPTIONS,
  examples: [
    ["lazarus flow install --agents-md --skill", "teach the agents of this workspace"],
    ["lazarus flow install --schedule systemd --dry-run", "what would be written and run?"],
  ],
  exits: ["degraded", "conflict", "machine", "unsupported"],
  run(context, { options }) {
    const dryRun = options["dry-run"];
    const request = requestOf(context, "flow install", options);
    const actions = planInstall(request, dryRun ? lookOnly : runProgram);
    const code = carryOutOrShow(context, actions, dryRun);
    return code === 0 && wasLeftAlone(actions) ? ERROR_KINDS.degraded.exit : code;
  },
});
