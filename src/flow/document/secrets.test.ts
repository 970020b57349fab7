import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findSecrets } from "../../platform/secrets/find.ts";
import { mayHoldSecret, redactText, refuseSecrets } from "./secrets.ts";

// Assembled at run time, so that secret scanners do not flag this file.
const SAMPLES = [
  `ghp_${"a1B2".repeat(9)}`,
  `xoxb-123456789012-1234567890123-${"AbCdEfGh".repeat(3)}`,
  "https://user:hunter22secret@example.com/",
  `-----BEGIN RSA PRIVATE KEY-----\n${"MIIEpAIBAAKCAQEA".repeat(4)}\n-----END RSA PRIVATE KEY-----`,
  `sk-ant-api03-${"Ab1_".repeat(23)}AA`,
  `npm_${"a1B2".repeat(9)}`,
  `AWS_SECRET_ACCESS_KEY = ${"wJalrXUtnFEMI/K7".repeat(2)}bPxRfiCY`,
  `postgres://user:${"pa55word".repeat(2)}@db.example.com:5432/app`,
  `glpat-${"a1B2c".repeat(4)}`,
];
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const JWT = `${part({ alg: "HS256" })}.${part({ sub: "anna" })}.${"SflKxwRJSMeKKF2QT4"}`;
const EC_KEY = `-----BEGIN ${"EC PRIVATE KEY"}-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/Pu\n-----END ${"EC PRIVATE KEY"}-----`;

describe("secrets", () => {
  it.for(SAMPLES.map((sample, i) => [i, sample] as const))(
    "are refused with rule and field, never the value (%i)",
    async ([, sample]) => {
      const found = await findSecrets(`see ${sample} there`);
      if (found.length === 0) return;
      const error = await refuseSecrets({ notes: `see ${sample} there` }).catch((caught: Error) => caught);
      expect(error).toMatchObject({ code: "FLOW_SECRET", details: { field: "notes", rule: found[0]!.kind } });
      expect(JSON.stringify(error)).not.toContain(sample.slice(4, 20));
    },
  );

  it("of at least six kinds are recognized", async () => {
    const known = await Promise.all(SAMPLES.map(async (sample) => (await findSecrets(sample)).length > 0));
    expect(known.filter(Boolean).length).toBeGreaterThanOrEqual(6);
  });

  it.for([
    ["password", "password=hunter2secret", "hunter2secret"],
    ["password", "db password: hunter2", "hunter2"],
    ["jwt", `session ${JWT}`, JWT],
    ["privatekey", EC_KEY, "MHcCAQEE"],
  ] as const)("of the generic rule %s are refused", async ([rule, notes, value]) => {
    const error = await refuseSecrets({ notes }).catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "FLOW_SECRET", details: { field: "notes", rule } });
    expect(JSON.stringify(error)).not.toContain(value);
  });

  it("cannot be allowed by a comment", async () => {
    const note = `secretlint-disable\n${SAMPLES[0]} // secretlint-disable-line`;
    await expect(refuseSecrets({ notes: note })).rejects.toMatchObject({ code: "FLOW_SECRET" });
  });

  it("are redacted in recorded output", async () => {
    const { text, count } = await redactText(`token ${SAMPLES[0]} end`);
    expect(text).toBe("token [redacted: github] end");
    expect(count).toBe(1);
  });

  it("are never missed by the quick check", async () => {
    const filler = fc.sample(fc.lorem({ maxCount: 3 }), { numRuns: 20, seed: 7 });
    for (const sample of SAMPLES) {
      for (const words of filler) expect(mayHoldSecret(`${words} ${sample} ${words}`)).toBe(true);
    }
  });

  it.for(["fetch", "install-dependencies", "step 12 of 40", "write the report", "", "a.b.c/d"])(
    "are not searched for in %j",
    (text) => {
      expect(mayHoldSecret(text)).toBe(false);
    },
  );
});
