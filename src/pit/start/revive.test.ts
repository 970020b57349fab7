import { describe, expect, test } from "vitest";
import { fillPlaceholders, splitWords } from "./revive.ts";

const values = { mission: "m1", cell: "/c/m1", checkpoint: "20261116-1", epoch: "3", session: "s-1" };

describe("resume_command", () => {
  test("replaces placeholders word by word", () => {
    expect(
      fillPlaceholders(["claude", "--resume", "{session}", "-p", "go on with {mission}"], values),
    ).toEqual(["claude", "--resume", "s-1", "-p", "go on with m1"]);
  });
  test("leaves other braces alone", () => {
    expect(fillPlaceholders(["echo", "{home}", "{epoch}"], values)).toEqual(["echo", "{home}", "3"]);
  });
  test("is not used when it needs a session and there is none", () => {
    expect(fillPlaceholders(["claude", "--resume", "{session}"], { ...values, session: "" })).toBeUndefined();
  });
  test.each([
    ["claude -p 'go on'", ["claude", "-p", "go on"]],
    ['sh -c "echo \\"a b\\""', ["sh", "-c", 'echo "a b"']],
    ["a $HOME *", ["a", "$HOME", "*"]],
    ["", []],
  ])("splits one line: %s", (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});
