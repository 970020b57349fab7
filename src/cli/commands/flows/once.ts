import { runOnce } from "../../../flow/once/once.ts";
import { replayBytes } from "../../../flow/once/output.ts";
import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Runs a command at most once per key and records its exit code and output. A second call prints the recorded output " +
    "and returns the recorded exit code without running anything. If a run was interrupted, its outcome is unknown: exit " +
    "code 4, and it runs again only with --retry-unknown. Otherwise the exit code of the command is returned.",
  positionals: [],
  passthrough: "command…",
  options: {
    ...WORKFLOW_OPTIONS,
    key: { type: "text", value: "KEY", summary: "identifies the command; any text" },
    "retry-unknown": { type: "flag", summary: "run it again if its outcome is unknown" },
    "retry-failed": { type: "flag", summary: "run it again if it failed" },
    ...OWNER_OPTIONS,
  },
  examples: [
    ["lazarus flow once -w report --key send -- ./send-mail.sh", "send the mail at most once"],
    [
      "lazarus flow once -w report --key send --retry-unknown -- ./send-mail.sh",
      "after checking that it was not sent",
    ],
  ],
  exits: ["unknown-outcome", "missing", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options, rest }) {
    const name = "flow once";
    if (rest.length === 0) throw usage(name, "missing command after --");
    const { json } = context.globals;
    const { terminal } = context;
    const key = required(name, "key", options.key);
    const result = await runOnce(workspaceOf(context, options), {
      workflow: required(name, "workflow", options.workflow),
      agent: options.agent,
      key,
      command: rest,
      cwd: context.surroundings.cwd,
      env: context.surroundings.env,
      me: ownerFor(context, options),
      retryUnknown: options["retry-unknown"],
      retryFailed: options["retry-failed"],
      stdin: "inherit",
      ...(json ? {} : { onStdout: (chunk) => terminal.out(chunk), onStderr: (chunk) => terminal.err(chunk) }),
      signal: context.signal,
    });
    for (const remark of result.remarks) context.warn(shown(remark));
    if (json) {
      const { stdout, stderr, ...facts } = result;
      context.emit("flow-once/1", { key, ...facts, stdout, stderr }, () => "");
    } else if (result.outcome === "replayed") {
      terminal.out(replayBytes(result.stdout));
      terminal.err(replayBytes(result.stderr));
      const { exitCode } = result;
      if (exitCode === 0) context.say(`${shown(key)} was already done; this is its recorded output`);
      else {
        context.say(`${shown(key)} already ended with exit code ${exitCode}; this is its recorded output`);
        context.say("  to run it again, add --retry-failed");
      }
    }
    return result.exitCode;
  },
});
