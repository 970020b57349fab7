// Which tool calls are worth a live point before they run: shell commands that delete or overwrite many files at once. Pure. A
// command that is missed costs at most the last seconds of work; a false positive costs milliseconds.
import type { HookEvent } from "./adapter.ts";

const DANGEROUS = [
  /\brm\s+(?:\S+\s+)*?-{1,2}(?:[a-zA-Z]*[rRf]|recursive|force)/,
  /\bgit\s+(?:\S+\s+)*?(?:reset\s+--hard|clean\b|checkout\s+(?:-f|--force|--|\.)|restore\b|switch\s+(?:-f|--force|--discard-changes)|stash\b|rebase\b)/,
  /\bfind\b.*\s-(?:delete|exec\s+rm)\b/,
  /\brsync\b.*\s--delete/,
  /\b(?:shred|truncate|mkfs|wipefs)\b/,
  /\bdd\b.*\bof=/,
  /\b(?:sed|perl)\s+(?:\S+\s+)*?-[a-zA-Z]*i/,
];

/**
 * Patterns of a shell's `case` that match everything that DANGEROUS can match, in a JSON text, and more: a script that finds one
 * lets `isDangerous` decide. A letter may precede a word: a line break is written as \\n.
 */
export const DANGEROUS_TEXT = [
  ...[
    "*rm[!a-z]*",
    "*git*reset*",
    "*git*clean*",
    "*git*checkout*",
    "*git*restore*",
    "*git*switch*",
    "*git*stash*",
  ],
  ...["*git*rebase*", "*-delete*", "*-exec*", "*shred*", "*truncate*", "*mkfs*", "*wipefs*", "*of=*"],
  ...["*sed[!a-z]*", "*perl[!a-z]*"],
];

/** Whether a hook announces such a call. */
export function isDangerous(event: HookEvent): boolean {
  if (event.kind !== "tool-start") return false;
  const { command } = event.call;
  return command !== null && DANGEROUS.some((pattern) => pattern.test(command));
}
