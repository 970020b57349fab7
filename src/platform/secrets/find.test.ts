import { lintSource } from "@secretlint/core";
import { rules } from "@secretlint/secretlint-rule-preset-recommend";
import { describe, expect, test } from "vitest";
import { findSecrets } from "./find.ts";
import { redactSecrets } from "./redact.ts";

// Assembled from parts, so that scanners do not report this file.
const TOKEN = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
const BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(20);
const KEY = `-----BEGIN ${"RSA PRIVATE KEY"}-----\n${BODY}-----END ${"RSA PRIVATE KEY"}-----`;

describe("secrets", () => {
  test("plain text has none", async () => {
    expect(await findSecrets("the quick brown fox jumps over the lazy dog, 42 times")).toEqual([]);
  });
  test("the range of a token is exact", async () => {
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
  test("a value without secrets is returned unchanged", async () => {
    const value = { a: ["b"] };
    expect((await redactSecrets(value)).value).toBe(value);
  });
  test("no part of a secret remains, even if its rule reports a wrong range", async () => {
    const key = ["wJalrXUtnFEMI", "K7MDENG", "bPxRfiCYzq8TpWl3Vd"].join("/");
    const { value } = await redactSecrets(`export AWS_SECRET_ACCESS_KEY=${key} && run`);
    expect(value).toBe("export [redacted: aws] && run");
  });
  test("a key of several lines is one secret", async () => {
    const { value, count } = await redactSecrets({ text: `before\n${KEY}\nafter` });
    expect(value.text).not.toContain("MIIEv");
    expect(count).toBe(1);
  });
  test("everything that secretlint reports is found completely", async () => {
    const letters = "Zq8TpWl3Vd5Rk7Yx2Nc9Mb4Hj6Gf1SaEuIo0PwQvLtXrCyB";
    const samples = {
      github: TOKEN,
      privatekey: KEY,
      npm: `npm_${letters.slice(0, 36)}`,
      gitlab: `glpat-${letters.slice(0, 20)}`,
      openai: `sk-${letters.slice(0, 20)}T3BlbkFJ${letters.slice(20, 40)}`,
      anthropic: `sk-ant-api03-${(letters + letters).slice(0, 93)}AA`,
      slack: `xoxb-${"123456789012-1234567890123"}-${letters.slice(0, 24)}`,
      sendgrid: `SG.${letters.slice(0, 22)}.${letters.slice(0, 43)}`,
      grafana: `glsa_${letters.slice(0, 32)}_${"0123abcd"}`,
      huggingface: `hf_${"abcdefghijklmnopqrstuvwxyzABCDEFGH"}`,
      basicauth: `https://anna:${letters.slice(0, 12)}@example.org/x`,
      "database-connection-string": `postgres://anna:${letters.slice(0, 12)}@db.example.org:5432/x`,
      aws: `AWS_SECRET_ACCESS_KEY=${letters.slice(0, 40)}`,
    };
    const config = { rules: rules.map((rule) => ({ id: rule.meta.id, rule, options: {} })) };
    const seen = new Set<string>();
    for (const [name, sample] of [...Object.entries(samples), ["all", Object.values(samples).join("\n")]]) {
      const content = `before ${sample} after\n`;
      const found = await findSecrets(content);
      const { messages } = await lintSource({
        source: { content, filePath: "/text.txt", ext: ".txt", contentType: "text" },
        options: { config, noPhysicFilePath: true },
      });
      expect(messages, name).not.toEqual([]);
      for (const { ruleId, range } of messages) {
        seen.add(ruleId.replace(/^.*secretlint-rule-/, ""));
        expect(found.some(({ start, end }) => start <= range[0] && end >= range[1])).toBe(true);
      }
    }
    expect([...seen].sort()).toEqual(Object.keys(samples).sort());
  });
  test("secrets that overlap are one range to the end of the last", async () => {
    const text = `mysql://anna:${TOKEN}@db.example.org/x`;
    expect(await findSecrets(text)).toMatchObject([{ start: 0, end: text.length }]);
  });
});
