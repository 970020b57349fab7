import type { AlertTargets } from "../../../flow/selfcheck/alert.ts";
import { DEFAULT_STALE_MINUTES, type SelfcheckReport } from "../../../flow/selfcheck/report.ts";
import { selfcheck } from "../../../flow/selfcheck/selfcheck.ts";
import { ERROR_KINDS, LazarusError } from "../../../platform/errors.ts";
import { isJsonObject } from "../../../platform/json-file.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

const MOST_LINES = 50;

export const command = defineCommand({
  about:
    "Looks for unfinished work that nobody has touched for too long, and for damaged files; no LLM is asked. Prints OK, or " +
    "ALERT and a line per finding. A command (which gets the alert as JSON on its input) and a webhook are told once " +
    "per finding until it changes; both can stand in the config file: flow.alert_command, flow.alert_webhook.",
  positionals: [],
  options: {
    "stale-min": { type: "number", value: "MINUTES", summary: "silence that counts as stale (10)" },
    "alert-command": { type: "text", value: "LINE", summary: "a line for sh, to be run when there is news" },
    "alert-webhook": { type: "text", value: "URL", summary: "where to post the alert as JSON" },
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow selfcheck --root ~/workspace || echo look", "from cron"],
    ["lazarus flow selfcheck --alert-command 'mail -s stale me@example.org'", "by mail, once"],
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
  const more = lines.length - 1 - MOST_LINES;
  if (more > 0) lines.splice(1 + MOST_LINES, more, `… and ${more} more; --json has them all`);
  return `${lines.join("\n")}\n`;
}

/** From the command line, else from the `flow` section of the config file. */
function targetsOf(
  context: CliContext,
  command: string | undefined,
  webhook: string | undefined,
): AlertTargets {
  const { document, file } = context.config;
  const section = isJsonObject(document.flow) ? document.flow : {};
  const read = (key: string): string | undefined => {
    const value = section[key];
    if (value === undefined || (typeof value === "string" && value !== "")) return value;
    throw new LazarusError("CONFIG_INVALID", `${file}: flow.${key} is not text`, {
      hint: `edit flow.${key} in ${file}`,
      details: { file, key: `flow.${key}`, expected: "text" },
    });
  };
  const url = webhook ?? read("alert_webhook");
  if (url !== undefined && !/^https?:\/\//.test(url)) {
    throw new LazarusError("USAGE", "the alert webhook is not an http or https address", {
      hint: "--alert-webhook https://example.org/hook",
    });
  }
  return { command: command ?? read("alert_command"), webhook: url };
}
