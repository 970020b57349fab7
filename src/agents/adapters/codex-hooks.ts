// Codex runs only hooks that are trusted by a hash of their definition; `--dangerously-bypass-hook-trust` would also run the
// user's untrusted ones. So a run passes ours with `-c`, together with the hashes of exactly these: nothing else is trusted,
// and nothing is stored. A version that computes the hash differently does not run them; then only the transcript is left.
import { sha256Hex } from "../../platform/sha256.ts";
import { type HookDialect, hookLine } from "../claude-style-hooks.ts";
import type { CallCommands } from "../tool-reports.ts";

export const DIALECT: HookDialect = {
  timeout: 10,
  events: {
    SessionStart: {},
    UserPromptSubmit: {},
    PreToolUse: {},
    PostToolUse: {},
    Stop: {},
    PreCompact: {},
  },
};

/** Where Codex says that hooks given by `-c` come from. */
const SOURCE = "/<session-flags>/config.toml";

/** `calls` are the commands before and after a tool call. */
export function trustedHooks(command: readonly string[], calls: CallCommands): readonly string[] {
  const { timeout } = DIALECT;
  const lines = Object.keys(DIALECT.events).map((event) => [event, hookLine(event, command, calls)] as const);
  const trusted = lines.map(([event, line]) => {
    const name = event.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
    // Codex hashes the definition as JSON with sorted keys.
    const definition = { async: false, command: line, timeout, type: "command" };
    const hash = sha256Hex(JSON.stringify({ event_name: name, hooks: [definition] }));
    return `"${SOURCE}:${name}:0:0"={trusted_hash="sha256:${hash}"}`;
  });
  const hooks = lines.map(
    ([event, line]) =>
      `hooks.${event}=[{hooks=[{type="command",command=${JSON.stringify(line)},timeout=${timeout}}]}]`,
  );
  return [...hooks, `hooks.state={${trusted.join(",")}}`].flatMap((setting) => ["-c", setting]);
}
