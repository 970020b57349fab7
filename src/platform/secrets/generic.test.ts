// What counts as a generic secret and what is an ordinary note.
import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { findGenericSecrets, mayContainSecret } from "./generic.ts";
import { redactSecrets } from "./redact.ts";

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const JWT = `${base64({ alg: "HS256", typ: "JWT" })}.${base64({ sub: "1234567890" })}.${"SflKxwRJSMeKKF2QT4"}`;
const pem = (type: "sec1" | "pkcs8", cipher?: string) =>
  generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: {
      type: type as "pkcs8",
      format: "pem",
      ...(cipher === undefined ? {} : { cipher, passphrase: "x" }),
    },
  });
/** Assembled from parts, so that scanners do not report this file. */
const BEGIN = (kind: string) => `-----BEGIN ${kind}PRIVATE KEY-----`;

const SECRETS: readonly (readonly [text: string, kind: string])[] = [
  ["password=hunter2", "password"],
  ["password=correcthorse", "password"],
  ["Password = Tr0ub4dor&3", "password"],
  ["the db works with password: hunter2, restart it", "password"],
  ["DB_PASSWORD=s3cr3t!", "password"],
  ["mysql --user=root --password=letmein app", "password"],
  ["psql --password hunter22 -h db", "password"],
  ['{"user": "anna", "password": "correct horse 7battery"}', "password"],
  ['{"body": "{\\"password\\": \\"hunter2\\"}"}', "password"],
  ["dbPassword: 'hunter2'", "password"],
  ["export PGPASSWD=abcd", "password"],
  ["passphrase := open-sesame-9", "password"],
  ["pwd=qwerty", "password"],
  [`client_secret=${"Zq8TpWl3Vd5Rk7Yx"}`, "assigned-secret"],
  [`api_key: ${"9f86d081884c7d65"}`, "assigned-secret"],
  [`"apiKey": "${"AIzaSyD4x8Qm2nR7"}"`, "assigned-secret"],
  [`access-token = ${"a1b2c3d4e5f6a7b8"}`, "assigned-secret"],
  [`deploy --token ${"a1b2c3d4e5f6a7b8"} now`, "assigned-secret"],
  [`Authorization: Bearer ${"a1b2c3d4e5f6a7b8c9"}`, "authorization"],
  [`curl -H "Authorization: token ${"0a1b2c3d4e5f6a7b8c9d"}"`, "authorization"],
  [JWT, "jwt"],
  [`the session is ${JWT} until noon`, "jwt"],
  [pem("sec1").privateKey, "privatekey"],
  [pem("pkcs8").privateKey, "privatekey"],
  [pem("pkcs8", "aes-256-cbc").privateKey, "privatekey"],
  [`${BEGIN("EC ")}\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49`, "privatekey"],
  [`key: "${BEGIN("")}\\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\\n"`, "privatekey"],
];

const NOTES: readonly string[] = [
  "password=$DB_PASSWORD",
  `password=\${DB_PASSWORD}`,
  "password=<your password>",
  "password=***",
  "password=…",
  "password=required",
  "password: see the vault",
  "password: ask Bob for it",
  "the password is wrong; reset it tomorrow",
  "password for user2 was reset on 2026-11-18",
  "password=/run/secrets/db",
  "password=op://vault/db/password",
  "password=env:DB_PASSWORD",
  "passwordFile=/etc/app/password.txt",
  "PWD=/home/anna OLDPWD=/tmp/x1",
  "check password-reset flow, step 3 of 12",
  "rotate the secret: done, next is staging-2",
  "secret: projects/app/secrets/db-2",
  "token count = 4096, max_tokens=200000",
  "tokens: 12345678901234",
  "nextPageToken=CAoQAA1234567890abc",
  "csrf_token=a1b2c3d4e5f6a7b8",
  "token=process.env.GITHUB_TOKEN",
  "token: step-12-of-40",
  "idempotency_key=report-2026-11-18-a1b2c3d4",
  "key=value, sort_key=created_at",
  "api_key=<key>",
  "api-key: stored in 1Password",
  "basic understanding of the parser, bearer of bad news",
  "Bearer authentication-is-required for the api",
  "commit 3f2a9c81d7e4b5a6c7d8e9f0a1b2c3d4e5f6a7b8 fixes it",
  "sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "eyJ is how base64 of JSON starts; see eyJhbGci.md.html",
  "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
  "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
  "the BEGIN PRIVATE KEY header is missing",
  "run migrations (utf8mb4), then token refresh at 20261118T0355Z",
];

describe("generic secrets", () => {
  it.each(SECRETS)("in %j are found", (text, kind) => {
    expect(findGenericSecrets(text).map((range) => range.kind)).toContain(kind);
    expect(mayContainSecret(text) || text.includes("BEGIN")).toBe(true);
  });

  it.each(NOTES)("are not in %j", (text) => {
    expect(findGenericSecrets(text)).toEqual([]);
  });
});

test.each([
  ["use password=hunter2, then go on", "use password=[redacted: password], then go on"],
  ['{"password": "hunter2"}', '{"password": "[redacted: password]"}'],
  [`Authorization: Bearer ${"a1b2c3d4e5f6a7b8c9"}\n`, "Authorization: Bearer [redacted: authorization]\n"],
])("the value in %j is replaced, and nothing else", async (text, redacted) => {
  expect((await redactSecrets(text)).value).toBe(redacted);
  expect((await redactSecrets(redacted)).count).toBe(0);
});

test("a field's name reveals its value", async () => {
  const { value } = await redactSecrets({ user: "anna", db: { password: "hunter2" }, note: "hunter2" });
  expect(value).toEqual({ user: "anna", db: { password: "[redacted: password]" }, note: "hunter2" });
});

test("ordinary words never contain one", () => {
  fc.assert(fc.property(fc.lorem({ mode: "sentences" }), (text) => findGenericSecrets(text).length === 0));
});

test("hostile text of a megabyte is searched without backtracking", () => {
  const size = 1_000_000;
  for (const unit of [
    "a",
    "a_",
    "password",
    "password=",
    "eyJ",
    "eyJa.",
    "-----BEGIN ",
    'token="',
    "\\",
    "Bearer ",
  ])
    expect(findGenericSecrets(unit.repeat(size / unit.length))).toBeInstanceOf(Array);
});
