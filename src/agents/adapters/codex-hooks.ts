// Codex runs only hooks that are trusted by a hash of their definition; `--dangerously-bypass-hook-trust` would also run the
// user's untrusted ones. So a run passes ours with `-c`, together with the hashes of exactly these: nothing else is trusted,
// and nothing is stored. A version that computes the hash differently does not run them; then only the transcript is left.
import { sha256Hex } from "../../platform/sha256.ts";
import { shellWord } from "../../platform/shell-word.ts";
import type { HookDialect } from "../claude-style-hooks.ts";

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

export function trustedHooks(command: readonly string[]): readonly string[] {
  const line = command.map(shellWord).join(" ");
  const { timeout } = DIALECT;
  const events = Object.keys(DIALECT.events);
  const hook = `{type="command",command=${JSON.stringify(line)},timeout=${timeout}}`;
  const trusted = events.map((event) => {
    const name = event.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
    // Codex hashes the definition as JSON with sorted keys.
    const definition = { async: false, command: line, timeout, type: "command" };
    const hash = sha256Hex(JSON.stringify({ event_name: name, hooks: [definition] }));
    return `"${SOURCE}:${name}:0:0"={trusted_hash="sha256:${hash}"}`;
  });
  return [
    ...events.map((event) => `hooks.${event}=[{hooks=[${hook}]}]`),
    `hooks.state={${trusted.join(",")}}`,
  ].flatMap((setting) => ["-c", setting]);
}
