// Which hooks are those of an agent inside another agent.
import { describe, expect, it } from "vitest";
import { BUILT_IN } from "./adapters.ts";
import { isNestedChain } from "./nested.ts";

const KEEPER = ["sh", "/var/lazarus/run/keeper-0123456789ab.sh", "/run/agents/m"];
const HOOK = ["/bin/sh", "-c", "lazarus hook claude"];
const CLAUDE = ["claude", "-p", "write"];
const TOOL = ["/bin/bash", "-c", "claude -p 'and this'"];

const isNested = (...chain: string[][]) => isNestedChain(chain, BUILT_IN);

describe("a hook is nested", () => {
  it.each([
    ["an agent in the tool of the same agent", [HOOK, CLAUDE, TOOL, CLAUDE, KEEPER]],
    ["an agent in the tool of another one", [HOOK, ["node", "/usr/bin/codex"], TOOL, CLAUDE, KEEPER]],
    [
      "an agent with a wrapper, in a tool",
      [HOOK, ["/x/codex"], ["node", "/usr/bin/codex"], TOOL, CLAUDE, KEEPER],
    ],
    ["without a keeper", [HOOK, CLAUDE, TOOL, CLAUDE, ["-bash"], ["sshd"]]],
  ])("%s", (_, chain) => expect(isNested(...chain)).toBe(true));
});

describe("a hook is the agent's own", () => {
  it.each([
    ["one process", [HOOK, CLAUDE, KEEPER]],
    ["behind npx", [HOOK, CLAUDE, ["sh", "-c", "claude"], ["npm exec claude"], KEEPER]],
    ["a wrapper and its child", [HOOK, ["/x/vendor/codex"], ["node", "/usr/bin/codex", "exec"], KEEPER]],
    [
      "a script in a package",
      [["node", "/n/node_modules/@google/gemini-cli/bundle/gemini.js"], ["node", "/usr/bin/gemini"], KEEPER],
    ],
    ["an agent that was started from the terminal of another", [HOOK, CLAUDE, KEEPER, TOOL, CLAUDE]],
    ["unknown processes only", [HOOK, ["python", "bot.py"], KEEPER]],
  ])("%s", (_, chain) => expect(isNested(...chain)).toBe(false));
});
