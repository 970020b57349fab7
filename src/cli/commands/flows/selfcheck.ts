import { readSection } from "../../../cell/settings.ts";
import type { AlertTargets } from "../../../flow/selfcheck/alert.ts";
import { DEFAULT_STALE_MINUTES, type SelfcheckReport } from "../../../flow/selfcheck/report.ts";
import { selfcheck } from "../../../flow/selfcheck/selfcheck.ts";
import { FLOW_SETTINGS } from "../../../flow/settings.ts";
import { ERROR_KINDS, LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

const MAX_LINES = 50;

export const command = defineCommand({
  about:
    "Finds unfinished workflows that have not been updated for too long, and damaged files, without asking an LLM. Prints " +
    "OK, or ALERT and a line per finding. A command (which receives the alert as JSON on stdin) and a webhook are called " +
    "once per finding until it changes. Both can be set in the config: flow.alert_command, flow.alert_webhook.",
  positionals: [],
  options: {
    "stale-min": {
      type: "number",
      value: "MINUTES",
      summary: "minutes without an update that count as stale (default 10)",
    },
    "alert-command": { type: "text", value: "LINE", summary: "command line for sh, run for new findings" },
    "alert-webhook": { type: "text", value: "URL", summary: "URL that receives the alert as a JSON POST" },
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow selfcheck --root ~/workspace || echo 'stale flows'", "from cron"],
    ["lazarus flow selfcheck --alert-command 'mail -s stale me@example.org'", "send a mail for new findings"],
  ],
  exits: ["alert", "missing", "machine"],
  async run(context, { options }) {
    const { report, alerted, problems } = await selfcheck(
      workspaceOf(context, options),
      options["stale-min"] ?? DEFAULT_STALE_MINUTES,
      targetsOf(context, options["alert-command"], options["alert-webhook"]),
    );
    context.emit("flow-selfcheck/1", { ...report, alerted, problems }, () => render(report));
    for (const problem of problems) context.warn(shown(problem));
    return report.status === "alert" ? ERROR_KINDS.alert.exit : 0;
  },
});

function render({ count, findings, invalid, thresholdMinutes }: SelfcheckReport): string {
  if (count + invalid.length === 0) return "OK\n";
  const lines = [
    `ALERT stale_checkpoints=${count} threshold_min=${thresholdMinutes}${invalid.length > 0 ? ` invalid_files=${invalid.length}` : ""}`,
    ...findings.map(
      ({ agentId, workflowId, ageMinutes, file }) =>
        `- ${shown(agentId)}:${shown(workflowId)} age=${ageMinutes}m file=${shown(file)}`,
    ),
    ...invalid.map(
      ({ workflowId, file, reason }) =>
        `- INVALID ${shown(workflowId)} file=${shown(file)}: ${shown(reason)}`,
    ),
  ];
  const more = lines.length - 1 - MAX_LINES;
  if (more > 0) lines.splice(1 + MAX_LINES, more, `… and ${more} more; --json lists all`);
  return `${lines.join("\n")}\n`;
}

/** From the command line, else from the `flow` section of the config file. */
function targetsOf(
  context: CliContext,
  command: string | undefined,
  webhook: string | undefined,
): AlertTargets {
  const { document, file } = context.config;
  const values = readSection(FLOW_SETTINGS, document.flow, `${file ?? "config"}: flow`);
  const url = webhook ?? values.alert_webhook;
  if (url !== undefined && !/^https?:\/\//.test(url)) {
    throw new LazarusError("USAGE", "the alert webhook is not an http or https address", {
      hint: "--alert-webhook https://example.org/hook",
    });
  }
  return { command: command ?? values.alert_command, webhook: url };
}
