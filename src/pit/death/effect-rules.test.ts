import { describe, expect, it } from "vitest";
import { DEFAULT_EFFECT_RULES, isReadOnly } from "./effect-rules.ts";

const matches = (text: string) => DEFAULT_EFFECT_RULES.some((rule) => new RegExp(rule, "i").test(text));

describe("the default effect rules", () => {
  it.each([
    "git push origin main",
    "cd app && git -C . push --force",
    "npm publish --access public",
    "curl -s -X POST https://example.com/pay",
    "curl --request=DELETE https://example.com/1",
    "curl https://example.com --data-binary @f",
    "gh pr create --fill",
    "echo hi | mail -s subject you@example.com",
    "terraform apply -auto-approve",
    "mcp__gmail__send_email",
    "send_message",
  ])("ask about %s", (text) => expect(matches(text)).toBe(true));

  it.each([
    "npm test",
    "git commit -m 'push it'".replace("push it", "fix"),
    "curl -s https://example.com",
    "gh pr view 12",
    "Bash",
    "Write",
    "rm -rf build",
  ])("leave %s to the model", (text) => expect(matches(text)).toBe(false));
});

describe("a call that only reads", () => {
  it.each([
    ["Read", null],
    ["read_file", null],
    ["Grep", null],
    ["WebFetch", null],
    ["mcp__fs__list_directory", null],
    ["Bash", "ls -la src"],
    ["Bash", " git status"],
  ])("%s %s", (tool, command) => expect(isReadOnly({ tool, command })).toBe(true));

  it.each([
    ["Write", null],
    ["apply_patch", null],
    ["find_and_replace", null],
    ["Task", null],
    ["Bash", "cat a > b"],
    ["Bash", "ls; rm -rf build"],
    ["Bash", "cat $(make)"],
    ["Bash", "lsof-and-kill"],
    ["shell", "npm test"],
  ])("is not %s %s", (tool, command) => expect(isReadOnly({ tool, command })).toBe(false));
});
