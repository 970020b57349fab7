// The hook after a tool call, of agents whose calls have ids: a shell script instead of `lazarus hook`, because the agent waits
// for it and a Node process costs 30 ms of CPU, the script 5. It appends the same line to hooks.jsonl, in one write. The line
// is not synced: without it, a call counts as cut off, and is checked once more. An input that the script does not
// understand is passed to `lazarus hook`. Pure: text for a file.
import { join } from "node:path";
import { shellWord } from "../platform/shell-word.ts";
import type { HookSetup } from "./adapter.ts";

const NAME = "tool-ended.sh";

/** `key`: the name of the id, which follows the output of the call: a quote within the output would be escaped. */
export function toolEnded(
  command: readonly string[],
  directory: string,
  key: string,
): { readonly command: readonly string[]; readonly file: HookSetup["files"][number] } {
  return { command: ["/bin/sh", join(directory, NAME)], file: { name: NAME, text: scriptOf(command, key) } };
}

function scriptOf(command: readonly string[], key: string): string {
  return `# Written by Lazarus for one run; it may be deleted at any time.
LC_ALL=C
umask 077
input=$(cat)
end=$(printf '%s' "$input" | tail -c 400)
id=
case $end in *'"${key}":"'*)
  id=\${end##*'"${key}":"'}
  id=\${id%%'"'*}
esac
case $id:$LAZARUS_EPOCH in :* | *: | *[!A-Za-z0-9_:-]*) ;; *)
  line='{"at_ms":%s000,"epoch":%s,"kind":"tool-end","call":{"id":"%s","tool":"","summary":"","command":null}}\\n'
  { printf "$line" "$(date +%s)" "$LAZARUS_EPOCH" "$id" >> "\${0%/*}/../hooks.jsonl"; } 2> /dev/null && exit 0 ;;
esac
printf '%s' "$input" | ${command.map(shellWord).join(" ")}
`;
}
