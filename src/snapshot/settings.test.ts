import { expect, test } from "vitest";
import { createMatcher, createSecretMatcher, DEFAULT_SECRETS } from "./settings.ts";

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
