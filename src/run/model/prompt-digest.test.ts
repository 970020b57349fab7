import { expect, test } from "vitest";
import { inputDigest } from "./ledger.ts";
import { isPromptDigest, promptDigest } from "./prompt-digest.ts";

const text = (role: string, ...texts: string[]) => ({
  role,
  content: texts.map((each) => ({ type: "text", text: each })),
});
const PROMPT = [
  { role: "system", content: "be brief" },
  text("user", "go"),
  text("assistant", "first"),
  text("tool", "result 1"),
  text("assistant", "second"),
  text("tool", "result 2"),
];
const changed = (i: number, message: (typeof PROMPT)[number]) => PROMPT.with(i, message);

test("the same prompt has the same digest", () => {
  expect(isPromptDigest(promptDigest(PROMPT), structuredClone(PROMPT))).toBe(true);
});

test.each([
  ["other instructions", changed(0, { role: "system", content: "be Brief" })],
  ["another last answer", changed(4, text("assistant", "Second"))],
  ["another last result", changed(5, text("tool", "result 3"))],
  ["a message less", PROMPT.toSpliced(2, 1)],
  ["another role", changed(3, text("user", "result 1"))],
  ["an earlier message of another length", changed(1, text("user", "go on"))],
  ["an earlier message in two parts", changed(1, text("user", "g", "o"))],
  ["nothing", []],
])("%s makes another digest", (_, prompt) => {
  expect(isPromptDigest(promptDigest(PROMPT), prompt)).toBe(false);
});

test("digests of earlier versions are compared with the whole prompt", () => {
  const stored = inputDigest(PROMPT).slice(0, 16);
  expect(isPromptDigest(stored, PROMPT)).toBe(true);
  expect(isPromptDigest(stored, changed(3, text("tool", "Result 1")))).toBe(false);
});
