// The agent of `lazarus demo`, a shell script, and the count of the letters in its mailbox. No I/O.
import { shellWord } from "../../../platform/shell-word.ts";

export const MISSION = "ten-letters";
export const LETTERS = 10;
/** The letter that the agent is writing when it is killed. */
export const KILLED_AT = 6;

/**
 * Sends ten letters, each through `lazarus flow once`, and reads from state/resume.json where to continue. `lazarus` is
 * a shell function, because in a clone the command is not on the PATH.
 */
export function agentScript(node: string, launcher: string): string {
  const steps = Array.from({ length: LETTERS }, (_, n) => `letter-${n + 1}`);
  return `#!/bin/sh
# Sends ten letters, each exactly once, even if it is killed and restarted.
lazarus() { ${shellWord(node)} ${shellWord(launcher)} "$@"; }
next=1
if [ -f "$LAZARUS_CELL/state/resume.json" ]; then
  next=$(sed -n 's/.*"step": "letter-\\([0-9]*\\)".*/\\1/p' "$LAZARUS_CELL/state/resume.json" | head -n 1)
  echo "continuing with letter $next"
else
  lazarus flow start -q -w letters --agent letter-writer --idempotency ten-letters --step ${steps[0]} ${steps.slice(1).join(" ")} >/dev/null || exit
fi
for n in $(seq "\${next:-1}" ${LETTERS}); do
  echo "writing letter $n"
  # The first life waits here to be killed.
  if [ "$n" = ${KILLED_AT} ] && [ "$LAZARUS_EPOCH" = 1 ]; then sleep 600; fi
  sleep 0.4
  lazarus flow once -q -w letters --key "letter-$n" -- \\
    sh -c 'echo "letter $1, sent by life $LAZARUS_EPOCH" >>"$MAILBOX"' sh "$n" || exit
  lazarus flow update -q -w letters --complete "letter-$n" >/dev/null || exit
done
lazarus flow complete -q -w letters >/dev/null
`;
}

export interface Mailbox {
  readonly sent: number;
  readonly once: boolean;
  readonly lives: number;
}

/** Counts what was sent. The mailbox is outside the cell, so a restore cannot have changed it. */
export function countLetters(mailbox: string): Mailbox {
  const lines = mailbox.split("\n").filter((line) => line !== "");
  const letters = lines.map((line) => Number(/^letter (\d+),/.exec(line)?.[1]));
  const once = letters.length === LETTERS && letters.every((letter, n) => letter === n + 1);
  const lives = new Set(lines.map((line) => /life (\d+)$/.exec(line)?.[1])).size;
  return { sent: letters.length, once, lives };
}
