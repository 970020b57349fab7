import { ERROR_KINDS } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { escapeControls } from "../../render/paint.ts";
import { examine, type Finding } from "./examine.ts";
import { examineAgents } from "./examine-agents.ts";

export const command = defineCommand({
  about:
    "Tests what Lazarus relies on, in scratch files: git, libc calls, durable writes, locks, nanosecond times, xattrs, " +
    "free space, the registry, gzip and the clock; and which agents' CLIs and hooks are installed. Reports what is missing, the consequence, and how to fix it.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus doctor", "check this machine"],
    ["lazarus doctor --json | jq '.findings[] | select(.status != \"ok\")'", "only problems"],
  ],
  exits: ["alert"],
  async run(context) {
    const findings = [...examine(context.machine, context.config), ...(await examineAgents(context))];
    const failed = findings.filter((finding) => finding.status === "failed").length;
    const { paint } = context;
    const marks = {
      ok: paint.green("ok     "),
      warning: paint.yellow("warning"),
      failed: paint.red("failed "),
    };
    const line = (finding: Finding) => {
      const hint = finding.hint ? `\n         try: ${escapeControls(finding.hint)}` : "";
      return `${marks[finding.status]}  ${finding.check}: ${escapeControls(finding.note)}${hint}\n`;
    };
    context.emit("doctor/1", { healthy: failed === 0, findings }, () => findings.map(line).join(""));
    return failed > 0 ? ERROR_KINDS.alert.exit : 0;
  },
});
