import { expect, test } from "vitest";
import { createMatcher, createSecretMatcher } from "./path-patterns.ts";
import { DEFAULT_SECRETS } from "./settings.ts";

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
  [["/"], "any/thing", false],
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
  [["a/**"], "a/b/c", true],
  [["a/**"], "a/.b/c", true],
  [["a/**"], "a", false],
  [["**/x"], "x", true],
  [["**/x"], "a/b/x", true],
  [["a/**/b"], "a/b", true],
  [["a/**/b"], "a/x/y/b", true],
  [[".env.*"], "a/.env.local", true],
  [["*.{key,pem}"], "a/b.pem", true],
  [["a[!x]b/c"], "a/b/c", false],
] as const)("%j and %s: %s", (patterns, path, expected) => {
  expect(createMatcher(patterns)(path)).toBe(expected);
  expect(createMatcher(patterns)(path, path.slice(path.lastIndexOf("/") + 1))).toBe(expected);
});

test("the default patterns match secrets by name, extension and directory, and no ordinary files", () => {
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
  [["[!]a]x"], "bx", true],
  [["[!]a]x"], "]x", false],
  [["[ab]c*"], "[ab]cd", false],
  [["file (1)*"], "a/file (1).txt", true],
  [["a|b*"], "a", false],
  [["a|b*"], "a|bc", true],
  [["[ab]+*"], "aa", false],
  [["!x*"], "!xy", true],
  [["!x*"], "y", false],
  [["@(a)*"], "a", false],
  [['"q"*'], '"q"x', true],
  [["a\\*b"], "a\\xb", true],
  [["a\\*b"], "a*b", false],
  [["**"], "dir\n/file", true],
  [[""], "anything", false],
] as const)("unusual pattern %j and %s: %s", (patterns, path, expected) => {
  expect(createMatcher(patterns)(path)).toBe(expected);
});

test("a secret pattern that matches a directory covers everything in it", () => {
  const isSecret = createSecretMatcher(["private", "vault/**/x"]);
  expect(
    ["private", "a/private/b/c", "private/x", "vault/a/x/below"].filter((path) => !isSecret(path)),
  ).toEqual([]);
  expect(["privately", "a/b", "vault/a/y"].filter((path) => isSecret(path))).toEqual([]);
});
