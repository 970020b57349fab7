import { type InstallRequest, planInstall } from "../../../flow/install/install.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { isJsonObject } from "../../../platform/json-file.ts";
import { wasLeftAlone } from "../../../service/plan.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { carryOutOrShow, INSTALL_OPTIONS, lookOnly, requestOf, runProgram } from "./install-options.ts";

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
  exits: ["degraded", "missing", "conflict", "machine", "unsupported", "config"],
  run(context, { options }) {
    const dryRun = options["dry-run"];
    const scheduled = options.schedule !== undefined;
    const request = {
      ...requestOf(context, "flow install", options),
      config: scheduled ? context.config.file : undefined,
    };
    const actions = planInstall(request, dryRun ? lookOnly : runProgram);
    const code = carryOutOrShow(context, actions, dryRun);
    if (scheduled) sayWhatIsMissing(context, request);
    return code === 0 && wasLeftAlone(actions) ? ERROR_KINDS.degraded.exit : code;
  },
});

/** A self-check that runs and tells nobody looks like one that finds nothing. */
function sayWhatIsMissing(context: CliContext, request: InstallRequest): void {
  const { document, file } = context.config;
  const { alert_command: line, alert_webhook: url } = isJsonObject(document.flow) ? document.flow : {};
  if (line === undefined && url === undefined) {
    const where = file ?? "the config file (lazarus config shows where it may lie)";
    context.say(`nobody is told of findings yet: put flow.alert_command or flow.alert_webhook into ${where}`);
  }
  if (request.schedule === "systemd" && !request.isRoot) {
    context.say("so that it runs when you are logged out, too: loginctl enable-linger");
  }
}
