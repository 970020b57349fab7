import { runOnce } from "../../../flow/once/once.ts";
import { replayBytes } from "../../../flow/once/output.ts";
import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Runs a command at most once per key, and records its exit code and output. The second call prints the record and " +
    "ends with the recorded exit code, without running anything. A key whose run died in the middle is unknown: exit " +
    "code 4, and it runs again only with --retry-unknown. Otherwise the exit code is the command's own.",
  positionals: [],
  passthrough: "command…",
  options: {
    ...WORKFLOW_OPTIONS,
    key: { type: "text", value: "KEY", summary: "names what must not happen twice; any text" },
    "retry-unknown": { type: "flag", summary: "run it again although its outcome is unknown" },
    "retry-failed": { type: "flag", summary: "run it again when it ended with another exit code than 0" },
    ...OWNER_OPTIONS,
  },
  examples: [
    ["lazarus flow once -w report --key send -- ./send-mail.sh", "sent once, whatever happens"],
    ["lazarus flow once -w report --key send --retry-unknown -- ./send-mail.sh", "after a look"],
  ],
  exits: ["unknown-outcome", "missing", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options, rest }) {
    const name = "flow once";
    if (rest.length === 0) throw usage(name, "which command? It stands after --");
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
      if (exitCode === 0) context.say(`${shown(key)} was done before; this is its record`);
      else {
        context.say(`${shown(key)} ended before with exit code ${exitCode}; this is its record`);
        context.say("  to run it again: the same command with --retry-failed");
      }
    }
    return result.exitCode;
  },
});
