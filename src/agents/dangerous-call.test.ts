import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { DANGEROUS_TEXT, isDangerous } from "./dangerous-call.ts";

const call = (command: string | null) => ({ id: null, tool: "bash", summary: "", command });

const COMMANDS = [
  ...["rm -rf build", "cd app && rm -fr .", "rm --recursive x", "git reset --hard HEAD~3"],
  ...[
    "git -C app clean -fdx",
    "git checkout -- .",
    "git checkout .",
    "git stash",
    "git restore .",
    "git rebase",
  ],
  ...["git switch -f main", "find . -name '*.o' -delete", "find . -exec rm {} +", "rsync -a --delete a/ b/"],
  ...[
    "dd if=/dev/zero of=disk.img",
    "sed -i s/a/b/ *.ts",
    "perl -pi -e s/a/b/ x",
    "shred x",
    "truncate -s 0 x",
  ],
  ...["mkfs /dev/sdb", "wipefs /dev/sdb"],
];

/** Which of the texts match the patterns of a shell's `case`. */
function matched(texts: readonly string[]): string[] {
  const script = `while IFS= read -r text; do case $text in ${DANGEROUS_TEXT.join(" | ")}) printf '%s\\n' "$text" ;; esac; done`;
  const input = texts.map((text) => `${text}\n`).join("");
  const { stdout } = spawnSync("/bin/sh", ["-c", script], { input, encoding: "utf8", env: { LC_ALL: "C" } });
  return stdout.split("\n").slice(0, -1);
}

describe("a live point is taken before", () => {
  it.each(COMMANDS)("%s", (command) => {
    expect(isDangerous({ kind: "tool-start", call: call(command) })).toBe(true);
  });

  it.each(["ls -la", "npm run build", "git status", "git commit -m 'rm'", "grep -r form .", "cat farm -r"])(
    "not before %s",
    (command) => {
      expect(isDangerous({ kind: "tool-start", call: call(command) })).toBe(false);
    },
  );

  it("not when the call ends, and not before other tools", () => {
    expect(isDangerous({ kind: "tool-end", call: call("rm -rf build") })).toBe(false);
    expect(isDangerous({ kind: "tool-start", call: call(null) })).toBe(false);
  });
});

describe("the patterns for a shell", () => {
  it("match every such command, wherever it is in a script", () => {
    const scripts = COMMANDS.flatMap((command) =>
      ["", "\n", "\t", " ", "/bin/", "x=1; ", '{"a":"'].flatMap((before) =>
        [command, command.replace(" ", "\n"), command.replace(" ", "\t"), `${command}"`].map(
          (text) => `${before}${text}`,
        ),
      ),
    ).filter((command) => isDangerous({ kind: "tool-start", call: call(command) }));
    expect(scripts.length).toBeGreaterThan(COMMANDS.length * 10);
    const texts = scripts.map((command) => JSON.stringify({ tool_input: { command } }));
    expect(matched(texts)).toEqual(texts);
  });

  it("do not match what agents do all the time", () => {
    expect(matched(["npm run build", "git status", "git commit -m 'fix'", "cat a.ts | head", "tsc"])).toEqual(
      [],
    );
  });
});
