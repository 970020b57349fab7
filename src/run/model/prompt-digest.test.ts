import fc from "fast-check";
import { expect, test } from "vitest";
import { inputDigest } from "./ledger.ts";
import { chainPrompt, isPromptDigest, promptDigest } from "./prompt-digest.ts";

type Prompt = Parameters<typeof chainPrompt>[1];

const text = (role: string, ...texts: string[]) => ({
  role,
  content: texts.map((each) => ({ type: "text", text: each })),
});
const PROMPT: Prompt = [
  { role: "system", content: "be brief" },
  text("user", "go"),
  text("assistant", "first"),
  text("tool", "result 1"),
  text("assistant", "second"),
  text("tool", "result 2"),
];
const changed = (i: number, message: Prompt[number]) => PROMPT.with(i, message);
const digestOf = (prompt: Prompt) => promptDigest(chainPrompt(undefined, prompt));
const isDigest = (digest: string, prompt: Prompt) => isPromptDigest(digest, chainPrompt(undefined, prompt));

test("the same prompt has the same digest", () => {
  expect(isDigest(digestOf(PROMPT), structuredClone(PROMPT))).toBe(true);
});

test.each([
  ["other instructions", changed(0, { role: "system", content: "be Brief" })],
  ["another last answer", changed(4, text("assistant", "Second"))],
  ["another last result", changed(5, text("tool", "result 3"))],
  ["one message fewer", PROMPT.toSpliced(2, 1)],
  ["another role", changed(3, text("user", "result 1"))],
  ["an earlier message of the same length", changed(3, text("tool", "Result 1"))],
  ["an earlier message in two parts", changed(1, text("user", "g", "o"))],
  ["nothing", []],
])("%s makes another digest", (_, prompt) => {
  expect(isDigest(digestOf(PROMPT), prompt)).toBe(false);
});

test("a digest does not depend on which prompt came before", () => {
  const value = fc.oneof(
    fc.constantFrom("a", "b", 1, null, undefined),
    fc.date(),
    fc.uint8Array({ maxLength: 2 }),
  );
  const field = fc.oneof(value, fc.array(value, { maxLength: 2 }));
  const part = fc.record({ x: field, y: field }, { requiredKeys: [] });
  const prompt = fc.array(fc.record({ role: fc.constantFrom("user", "tool"), content: fc.array(part) }));
  fc.assert(
    fc.property(prompt, prompt, fc.nat(4), (one, other, shared) => {
      const next = [...structuredClone(one.slice(0, shared)), ...one.slice(shared, shared + 1), ...other];
      expect(promptDigest(chainPrompt(chainPrompt(undefined, one), next))).toBe(digestOf(next));
    }),
  );
});

test("what is equal to the prompt before is not hashed again", () => {
  const read: string[] = [];
  const content = { toJSON: () => read.push("content") };
  const chain = chainPrompt(undefined, [{ role: "user", content }]);
  chainPrompt(chain, [{ role: "user", content }, text("user", "go on")]);
  expect(read).toEqual(["content"]);
});

test("digests of earlier versions are compared as those versions made them", () => {
  const whole = inputDigest(PROMPT).slice(0, 16);
  expect(isDigest(whole, PROMPT)).toBe(true);
  expect(isDigest(whole, changed(3, text("tool", "Result 1")))).toBe(false);
  // Of older messages, these have only the shape.
  const shapes = "new:731f8b528c93407d";
  expect(isDigest(shapes, PROMPT)).toBe(true);
  expect(isDigest(shapes, changed(5, text("tool", "Result 2")))).toBe(false);
});
