import { ERROR_KINDS } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { harmless } from "../../render/paint.ts";
import { examine, type Finding } from "./examine.ts";

export const command = defineCommand({
  about:
    "Tries everything that Lazarus relies on, in scratch files: git, libc calls, durable writes, locks, nanosecond " +
    "times, xattrs, free space, the registry, gzip and the clock. Says what is missing, what that costs, and what to type.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus doctor", "is this machine fit?"],
    ["lazarus doctor --json | jq '.findings[] | select(.status != \"ok\")'", "only what is wrong"],
  ],
  exits: ["alert"],
  run(context) {
    const findings = examine(context.machine, context.config);
    const failed = findings.filter((finding) => finding.status === "failed").length;
    const { paint } = context;
    const marks = {
      ok: paint.green("ok     "),
      warning: paint.yellow("warning"),
      failed: paint.red("failed "),
    };
    const line = (finding: Finding) => {
      const hint = finding.hint ? `\n         try: ${harmless(finding.hint)}` : "";
      return `${marks[finding.status]}  ${finding.check}: ${harmless(finding.note)}${hint}\n`;
    };
    context.emit("doctor/1", { healthy: failed === 0, findings }, () => findings.map(line).join(""));
    return failed > 0 ? ERROR_KINDS.alert.exit : 0;
  },
});
