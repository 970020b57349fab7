import { type InstallRequest, planInstall } from "../../../flow/install/install.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { isJsonObject } from "../../../platform/json-file.ts";
import { wasLeftAlone } from "../../../service/plan.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { carryOutOrShow, INSTALL_OPTIONS, requestOf, runForDryRun, runProgram } from "./install-options.ts";

export const command = defineCommand({
  about:
    "Adds the start-up rule to AGENTS.md (between markers; the rest of the file is kept), schedules the self-check, and " +
    "adds a skill folder to the workspace. Running it again updates them. Files that Lazarus did not write are left alone.",
  positionals: [],
  options: INSTALL_OPTIONS,
  examples: [
    ["lazarus flow install --agents-md --skill", "for the agents of this workspace"],
    ["lazarus flow install --schedule systemd --dry-run", "show what would be written and run"],
  ],
  exits: ["degraded", "missing", "conflict", "machine", "unsupported", "config"],
  run(context, { options }) {
    const dryRun = options["dry-run"];
    const scheduled = options.schedule !== undefined;
    const request = {
      ...requestOf(context, "flow install", options),
      config: scheduled ? context.config.file : undefined,
    };
    const actions = planInstall(request, dryRun ? runForDryRun : runProgram);
    const code = carryOutOrShow(context, actions, dryRun);
    if (scheduled) warnAboutMissingSetup(context, request);
    return code === 0 && wasLeftAlone(actions) ? ERROR_KINDS.degraded.exit : code;
  },
});

/** A self-check without an alert target would find problems silently. */
function warnAboutMissingSetup(context: CliContext, request: InstallRequest): void {
  const { document, file } = context.config;
  const { alert_command: line, alert_webhook: url } = isJsonObject(document.flow) ? document.flow : {};
  if (line === undefined && url === undefined) {
    const where = file ?? "the config file (see lazarus config --help)";
    context.say(`no alerts are sent yet: set flow.alert_command or flow.alert_webhook in ${where}`);
  }
  if (request.schedule === "systemd" && !request.isRoot) {
    context.say("to keep it running after you log out: loginctl enable-linger");
  }
}
