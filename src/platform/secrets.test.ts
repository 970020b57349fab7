import { describe, expect, test } from "vitest";
import { findSecrets, redactSecrets } from "./secrets.ts";

// Put together here, so that no scanner takes this file for a leak.
const TOKEN = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
const BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(20);
const KEY = `-----BEGIN ${"RSA PRIVATE KEY"}-----\n${BODY}-----END ${"RSA PRIVATE KEY"}-----`;

describe("secrets", () => {
  test("plain text has none", async () => {
    expect(await findSecrets("the quick brown fox jumps over the lazy dog, 42 times")).toEqual([]);
  });
  test("a token is found where it stands", async () => {
    const [found] = await findSecrets(`use ${TOKEN} for it`);
    expect(found).toMatchObject({ kind: "github", start: 4, end: 4 + TOKEN.length });
  });
  test("every string of a value is cleaned, and nothing else changes", async () => {
    const value = {
      role: "user",
      content: [{ text: `a ${TOKEN} b ${TOKEN}` }, "fine", 7, null],
      deep: { url: TOKEN },
    };
    const { value: clean, count } = await redactSecrets(value);
    expect(count).toBe(3);
    expect(clean).toEqual({
      role: "user",
      content: [{ text: "a [redacted: github] b [redacted: github]" }, "fine", 7, null],
      deep: { url: "[redacted: github]" },
    });
    expect(JSON.stringify(clean)).not.toContain("ghp_");
  });
  test("a value without secrets comes back as it is", async () => {
    const value = { a: ["b"] };
    expect((await redactSecrets(value)).value).toBe(value);
  });
  test("no half of a secret is left behind, whatever range its rule reports", async () => {
    const key = ["wJalrXUtnFEMI", "K7MDENG", "bPxRfiCYzq8TpWl3Vd"].join("/");
    const { value } = await redactSecrets(`export AWS_SECRET_ACCESS_KEY=${key} && run`);
    expect(value).toBe("export [redacted: aws] && run");
  });
  test("a key of several lines is one secret", async () => {
    const { value, count } = await redactSecrets({ text: `before\n${KEY}\nafter` });
    expect(value.text).not.toContain("MIIEv");
    expect(count).toBe(1);
  });
  test("the ten-thousandth text costs what the first did, and nothing is kept of them", async () => {
    await findSecrets("warm up, warm up, warm up");
    for (let i = 0; i < 2000; i += 1) await findSecrets(`text number ${i}`);
    expect(performance.getEntriesByType("mark").length).toBe(0);
  });
});
