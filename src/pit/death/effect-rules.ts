// Which tool calls of an agent CLI change something, and which of them the user wants to be asked about when they are cut
// off. Pure. A call counts as a change unless it is known to only read: an extra entry in the history is better than a missing one
// (INV-5).
import type { ToolCall } from "../../agents/adapter.ts";

/**
 * Default of `pit.effects`: shell commands and tools with an effect on the outside world that must not be repeated blindly.
 * Regular expressions, matched without regard to case anywhere in the command, or in the tool's name.
 */
export const DEFAULT_EFFECT_RULES: readonly string[] = [
  "\\bgit\\b.*\\bpush\\b",
  "\\b(npm|pnpm|yarn|bun|cargo|poetry|uv)\\s+publish\\b",
  "\\b(twine\\s+upload|gem\\s+push|(docker|podman)\\s+push)\\b",
  "\\bcurl\\b.*\\s(-X|--request)[\\s=]*['\"]?(POST|PUT|PATCH|DELETE)\\b",
  "\\bcurl\\b.*\\s(-d|-F|-T|--data[\\w-]*|--form|--json|--upload-file)\\b",
  "\\b(gh|glab)\\s+(pr|mr|issue|release|repo|workflow)\\s+(create|merge|close|comment|delete|edit|review|run)\\b",
  "\\b(mail|mailx|mutt|sendmail|msmtp|swaks)\\s",
  "\\b(kubectl|terraform|tofu|pulumi|helm)\\s.*\\b(apply|delete|destroy|up|install|upgrade)\\b",
  "(send|post|create|reply)_?(e?mail|message|tweet|payment|invoice)",
];

/** Words of a tool's name, as agents spell them: `read_file`, `ReadFile`, `mcp__fs__list_directory`. */
const READING =
  /(?:^|_)(?:read|view|open|get|list|ls|glob|grep|search|find|fetch|query|think|todo|plan|ask)(?:_|$)/;
const CHANGING =
  /(?:^|_)(?:write|edit|create|delete|remove|update|set|send|post|put|patch|apply|run|exec|execute|bash|shell|move|insert|replace)(?:_|$)/;

const READING_COMMANDS =
  /^(?:ls|cat|head|tail|wc|pwd|stat|file|which|type|grep|rg|du|df|date|whoami|env|ps|git (?:status|log|diff|show|branch|blame|rev-parse))(?:\s|$)/;
/** Anything that can start another command or write a file. */
const SHELL_SYNTAX = /[;&|<>`$(){}\n]/;

/** Whether repeating the call is harmless: it can only read. */
export function isReadOnly({ tool, command }: Pick<ToolCall, "tool" | "command">): boolean {
  if (command !== null) return READING_COMMANDS.test(command.trim()) && !SHELL_SYNTAX.test(command.trim());
  const name = tool
    .replaceAll(/([a-z])(?=[A-Z])/g, "$1_")
    .toLowerCase()
    .replaceAll(/[^a-z]+/g, "_");
  return READING.test(name) && !CHANGING.test(name);
}
