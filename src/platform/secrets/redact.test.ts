import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { redactSecrets } from "./redact.ts";

// Assembled from parts, so that scanners do not report this file.
const TOKEN = ["ghp", "1234567890abcdefghijklmnopqrstuvwx12"].join("_");
const AWS = ["wJalrXUtnFEMI", "K7MDENG", "bPxRfiCYzq8TpWl3Vd"].join("/");

describe("redaction of a record", () => {
  test.each([
    ["in a text", { text: `use ${TOKEN} now` }],
    ["as a whole text", [TOKEN]],
    ["in the name of a field", { args: { [TOKEN]: 1 } }],
    ["in the name of a field that holds a list", { [TOKEN]: [1, { a: 2 }] }],
    ["in a deeply nested value", { a: [{ b: [[{ c: TOKEN }]] }] }],
    ["twice", [TOKEN, { [TOKEN]: TOKEN }]],
    [
      "in adjacent text parts",
      [
        { type: "text", text: `a ${TOKEN.slice(0, 12)}` },
        { type: "text", text: `${TOKEN.slice(12)} b` },
      ],
    ],
    [
      "in three text parts of a message",
      {
        role: "assistant",
        content: [0, 15, 30].map((at) => ({ type: "text", text: TOKEN.slice(at, at + 15) })),
      },
    ],
  ])("finds a secret %s", async (_, value) => {
    const { value: clean, count } = await redactSecrets(value);
    const text = JSON.stringify(clean);
    expect(count).toBeGreaterThan(0);
    expect(text).toContain("[redacted: github]");
    expect(text).not.toContain(TOKEN);
    for (const at of [0, 12, 15, 30]) expect(text).not.toContain(TOKEN.slice(at).slice(4));
  });

  test("finds a secret that only its field's name reveals", async () => {
    const { value, count } = await redactSecrets({
      env: { AWS_SECRET_ACCESS_KEY: AWS, REGION: "eu-west-1" },
    });
    expect(count).toBe(1);
    expect(JSON.stringify(value)).not.toContain(AWS.slice(-8));
    expect(value).toMatchObject({ env: { REGION: "eu-west-1" } });
  });

  test("leaves no part of a secret whose name precedes it in the same text", async () => {
    const { value } = await redactSecrets(`export AWS_SECRET_ACCESS_KEY=${AWS} && run`);
    expect(value).not.toContain(AWS.slice(-8));
    expect(value).toMatch(/^export \[redacted: aws\] && run$/);
  });

  test("keeps the text around a secret, and parts without one", async () => {
    const { value } = await redactSecrets({
      content: [
        { type: "text", text: "hello" },
        { type: "text", text: `see ${TOKEN}!` },
        { type: "tool-call", input: { n: 1, ok: true, none: null } },
      ],
    });
    expect(value).toEqual({
      content: [
        { type: "text", text: "hello" },
        { type: "text", text: "see [redacted: github]!" },
        { type: "tool-call", input: { n: 1, ok: true, none: null } },
      ],
    });
  });

  test("returns any value without secrets unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const clean = await redactSecrets(value);
        expect(clean).toEqual({ value, count: 0 });
        expect(clean.value).toBe(value);
      }),
    );
  });
});
