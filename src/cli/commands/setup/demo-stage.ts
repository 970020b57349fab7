// The play that `lazarus demo` shows: an agent of thirty lines, the mailbox outside its cell, and the texts. No I/O.
import { shellWord } from "../../../platform/shell-word.ts";

export const MISSION = "ten-letters";
export const LETTERS = 10;
/** It is killed while it works on this one. */
export const FATAL_LETTER = 6;

/**
 * The agent: any program would do. It sends ten letters, each through `lazarus flow once`, and asks state/resume.json
 * where to go on. `lazarus` is a function, so that it works from a checkout as well.
 */
export function agentScript(node: string, launcher: string): string {
  const steps = Array.from({ length: LETTERS }, (_, n) => `letter-${n + 1}`);
  return `#!/bin/sh
# Ten letters, each sent once, whatever happens to me.
lazarus() { ${shellWord(node)} ${shellWord(launcher)} "$@"; }
next=1
if [ -f "$LAZARUS_CELL/state/resume.json" ]; then
  next=$(sed -n 's/.*"step": "letter-\\([0-9]*\\)".*/\\1/p' "$LAZARUS_CELL/state/resume.json" | head -n 1)
  echo "I was told to go on with letter $next"
else
  lazarus flow start -q -w letters --agent letter-writer --idempotency ten-letters --step ${steps[0]} ${steps.slice(1).join(" ")} >/dev/null || exit
fi
for n in $(seq "\${next:-1}" ${LETTERS}); do
  echo "writing letter $n"
  # My first life is killed over this one, and waits for it.
  if [ "$n" = ${FATAL_LETTER} ] && [ "$LAZARUS_EPOCH" = 1 ]; then sleep 600; fi
  sleep 0.4
  lazarus flow once -q -w letters --key "letter-$n" -- \\
    sh -c 'echo "letter $1, sent by life $LAZARUS_EPOCH" >>"$MAILBOX"' sh "$n" || exit
  lazarus flow update -q -w letters --complete "letter-$n" >/dev/null || exit
done
lazarus flow complete -q -w letters >/dev/null
`;
}

export interface Proof {
  readonly sent: number;
  readonly once: boolean;
  readonly lives: number;
}

/** Each letter once, counted in the mailbox: outside of everything that Lazarus could have put back. */
export function prove(mailbox: string): Proof {
  const lines = mailbox.split("\n").filter((line) => line !== "");
  const letters = lines.map((line) => Number(/^letter (\d+),/.exec(line)?.[1]));
  const once = letters.length === LETTERS && letters.every((letter, n) => letter === n + 1);
  const lives = new Set(lines.map((line) => /life (\d+)$/.exec(line)?.[1])).size;
  return { sent: letters.length, once, lives };
}
