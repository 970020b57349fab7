import { describe, expect, test } from "vitest";
import { fillPlaceholders, findTemplateProblem, splitWords } from "./resume-command.ts";

const values = { mission: "m1", cell: "/c/m1", checkpoint: "20261116-1", epoch: "3", session: "s-1" };

describe("a resume command", () => {
  test("has its placeholders replaced word by word", () => {
    const template = ["claude", "--resume", "{session}", "-p", "go on with {mission}", "--id={session}"];
    expect(fillPlaceholders(template, values)).toEqual({
      command: ["claude", "--resume", "s-1", "-p", "go on with m1", "--id=s-1"],
    });
  });
  test("keeps other braces", () => {
    expect(fillPlaceholders(["echo", "{home}", "{epoch}"], values)).toEqual({
      command: ["echo", "{home}", "3"],
    });
  });
  test("may name a program in the cell", () => {
    expect(fillPlaceholders(["{cell}/worktree/agent", "{cell}/x"], values)).toEqual({
      command: ["/c/m1/worktree/agent", "/c/m1/x"],
    });
  });
  test("is not used when it needs a value and there is none", () => {
    const filled = fillPlaceholders(["claude", "--resume", "{session}"], { ...values, session: "" });
    expect(filled).toEqual({ refused: "there is no {session}" });
  });
  test.each(["--dangerously-skip-permissions", "-p", "-"])("never turns %s into an option", (session) => {
    for (const word of ["{session}", "--resume={session}", "about {session}"])
      expect(fillPlaceholders(["claude", word], { ...values, session })).toEqual({
        refused: "the value of {session} starts with a dash",
      });
  });
  test.each([
    [["{session}"], 'the program "{session}" contains a placeholder'],
    [["/bin/{session}"], 'the program "/bin/{session}" contains a placeholder'],
    [["a", "{session}.json"], 'the word "{session}.json" starts with a placeholder'],
    [["a", "--{session}"], 'the word "--{session}" starts with a placeholder'],
    [["a", "-{cell}"], 'the word "-{cell}" starts with a placeholder'],
    [["a", "{session}\n"], "starts with a placeholder"],
    [[], "the command is empty"],
    [[""], "the command is empty"],
  ])("%j is refused", (template, problem) => {
    expect(findTemplateProblem(template)).toContain(problem);
    expect(fillPlaceholders(template, values)).toHaveProperty("refused");
  });
  test.each([
    ["claude -p 'go on'", ["claude", "-p", "go on"]],
    ['sh -c "echo \\"a b\\""', ["sh", "-c", 'echo "a b"']],
    ["a $HOME *", ["a", "$HOME", "*"]],
    ["", []],
  ])("is split from one line: %s", (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});
