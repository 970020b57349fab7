import { expect, test } from "vitest";
import { createMatcher, createSecretMatcher, DEFAULT_SECRETS, readSettings } from "./settings.ts";

test.each([
  [["*.key"], "a/b.key", true],
  [["*.key"], "a/.key", true],
  [["*.key"], "a/b.key.txt", false],
  [["*.key"], "a.key/b", false],
  [["*.tar.gz"], "a/b.tar.gz", true],
  [["*.tar.gz"], "a/b.gz", false],
  [["*.k?y"], "a/b.kiy", true],
  [["*.[kp]em"], "b.pem", true],
  [["*"], "any/thing", true],
  [["name"], "a/name", true],
  [["name"], "name/a", false],
  [["**/.ssh/**"], "home/.ssh/id", true],
  [["**/.ssh/**"], ".ssh/id", true],
  [["**/.ssh/**"], "home/x.ssh/id", false],
  [["a/*/c"], "a/b/c", true],
  [["a/*/c"], "a/b/b/c", false],
  [["a/{b,c}/**"], "a/c/d", true],
  [["*/*"], "a/b", true],
  [["*/*"], "a", false],
] as const)("%j and %s: %s", (patterns, path, expected) => {
  expect(createMatcher(patterns)(path)).toBe(expected);
  expect(createMatcher(patterns)(path, path.slice(path.lastIndexOf("/") + 1))).toBe(expected);
});

test("secrets are found by name, by ending and by place, and ordinary files are not taken for them", () => {
  const isSecret = createSecretMatcher(DEFAULT_SECRETS);
  const paths = [
    "worktree/.env",
    "worktree/.env.local",
    "a/server.pem",
    "a/.aws/credentials",
    "a/.ssh/b/c",
    ".netrc",
  ];
  expect(paths.filter((path) => !isSecret(path))).toEqual([]);
  const others = [
    "worktree/env",
    "worktree/pem",
    "a/aws/credentials",
    "a/ssh/b",
    "a/key.ts",
    "worktree/.envrc",
  ];
  expect(others.filter(isSecret)).toEqual([]);
});

test.each([
  [["build/"], "worktree/build", true],
  [["build/"], "worktree/build/x", false],
  [["/state/x"], "state/x", true],
  [["./state/x"], "state/x", true],
  [["/state/x"], "worktree/state/x", false],
  [["[!a]bc"], "xbc", true],
  [["[!a]bc"], "abc", false],
  [["[^a]bc"], "abc", false],
  [["a[b"], "a[b", true],
  [["a{b"], "a{b", true],
  [["a+(b)$"], "x/a+(b)$", true],
  [["*"], "with\nnewline", true],
  [["?"], "ab", false],
  [["[]]x"], "]x", true],
  [[""], "anything", false],
] as const)("odd pattern %j and %s: %s", (patterns, path, expected) => {
  expect(createMatcher(patterns)(path)).toBe(expected);
});

test("a pattern of secrets that names a directory means all that is in it", () => {
  const isSecret = createSecretMatcher(["private", "vault/**/x"]);
  expect(
    ["private", "a/private/b/c", "private/x", "vault/a/x/below"].filter((path) => !isSecret(path)),
  ).toEqual([]);
  expect(["privately", "a/b", "vault/a/y"].filter((path) => isSecret(path))).toEqual([]);
});

test("broken settings are named, with the file that holds them", () => {
  for (const [document, key] of [
    [{ snapshot: 5 }, "snapshot"],
    [{ snapshot: { compression: "lzma" } }, "snapshot.compression"],
    [{ snapshot: { exclude: "node_modules" } }, "snapshot.exclude"],
    [{ secrets: { patterns: [1] } }, "secrets.patterns"],
    [{ retention: { keep_last: -1 } }, "retention.keep_last"],
    [{ retention: { keep_daily: 1.5 } }, "retention.keep_daily"],
    [{ retention: { auto: "yes" } }, "retention.auto"],
  ] as const) {
    const reading = () => readSettings(document as never, "/etc/lazarus.json");
    expect(reading).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(reading).toThrow(`/etc/lazarus.json: ${key} is not`);
  }
  expect(readSettings({}, undefined)).toMatchObject({
    compression: "gzip",
    autoPrune: true,
    secrets: DEFAULT_SECRETS,
  });
});
