// Which agent a command line starts, and what is kept in front of it.
import { describe, expect, test } from "vitest";
import { claude } from "./adapters/claude.ts";
import { BUILT_IN } from "./adapters.ts";
import { recognize } from "./recognize.ts";

const line = (command: string) => {
  const found = recognize(JSON.parse(command), BUILT_IN);
  return found === undefined
    ? null
    : [found.adapter.name, found.line.prefix, found.line.program, found.line.args];
};
const find = (...command: string[]) => line(JSON.stringify(command));

describe("recognizes", () => {
  test.each<[string[], unknown]>([
    [
      ["claude", "-p", "x"],
      ["claude", [], "claude", ["-p", "x"]],
    ],
    [["/opt/bin/claude"], ["claude", [], "/opt/bin/claude", []]],
    [
      ["env", "-u", "X", "A=1", "claude", "-p"],
      ["claude", ["env", "-u", "X", "A=1"], "claude", ["-p"]],
    ],
    [
      ["nice", "-n", "5", "claude"],
      ["claude", ["nice", "-n", "5"], "claude", []],
    ],
    [
      ["timeout", "-k", "5", "1h", "claude", "-p"],
      ["claude", ["timeout", "-k", "5", "1h"], "claude", ["-p"]],
    ],
    [
      ["npx", "--yes", "@anthropic-ai/claude-code@2.1.0", "-p", "x"],
      ["claude", ["npx", "--yes"], "@anthropic-ai/claude-code@2.1.0", ["-p", "x"]],
    ],
    [
      ["npx", "-p", "@anthropic-ai/claude-code", "claude", "-p", "x"],
      ["claude", ["npx", "-p", "@anthropic-ai/claude-code"], "claude", ["-p", "x"]],
    ],
    [
      ["pnpm", "dlx", "@anthropic-ai/claude-code"],
      ["claude", ["pnpm", "dlx"], "@anthropic-ai/claude-code", []],
    ],
    [
      ["bunx", "@anthropic-ai/claude-code", "x"],
      ["claude", ["bunx"], "@anthropic-ai/claude-code", ["x"]],
    ],
    [
      ["node", "--no-warnings", "/x/node_modules/@anthropic-ai/claude-code/cli.js", "-p", "x"],
      ["claude", ["node", "--no-warnings"], "/x/node_modules/@anthropic-ai/claude-code/cli.js", ["-p", "x"]],
    ],
    [
      ["sh", "-c", 'claude -p \'a b\' "c\\"d"'],
      ["claude", ["sh", "-c", 'exec "$0" "$@"'], "claude", ["-p", "a b", 'c"d']],
    ],
    [
      ["bash", "-lc", 'KEY="$(cat key)" exec env A=1 claude -p x'],
      ["claude", ["bash", "-lc", 'KEY="$(cat key)" exec "$0" "$@"', "env", "A=1"], "claude", ["-p", "x"]],
    ],
  ])("%j", (command, expected) => {
    expect(find(...command)).toEqual(expected);
  });
});

describe("does not recognize", () => {
  test.each<string[][]>([
    [["make", "claude"]],
    [["sh", "-c", "claude -p x && echo done"]],
    [["sh", "-c", "claude -p x | tee log"]],
    [["sh", "-c", "claude -p $PROMPT"]],
    [["sh", "-c", "claude -p x > log"]],
    [["sh", "-c", "cd /tmp; claude"]],
    [["sh", "-c", "claude *.md"]],
    [["sh", "-c", "claude 'open"]],
    [["sh", "run-claude.sh"]],
    [["npx", "claude-something"]],
    [["npm", "run", "claude"]],
    [["node", "claude.js"]],
    [["my-claude", "-p", "x"]],
    [["env"]],
    [[]],
  ])("%j", (command) => {
    expect(find(...command)).toBeNull();
  });
});

test("a wrapper script is recognized by the name that the config declares", () => {
  const wrapper = { ...claude, programs: ["my-claude"] };
  const found = recognize(["./my-claude", "-p", "x"], [wrapper, ...BUILT_IN]);
  expect(found?.adapter.name).toBe("claude");
});
