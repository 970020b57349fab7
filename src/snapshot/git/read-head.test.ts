import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readHead } from "./read-head.ts";

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "lazarus-head-"));
});
afterEach(() => fs.rmSync(root, { recursive: true }));

const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", "-C", root, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env.PATH, HOME: root },
  }).trim();
const commit = (message: string) => git("commit", "-q", "--allow-empty", "-m", message);
const directory = () => join(root, ".git");

it("reads the same as git: a branch, packed refs, a detached HEAD", () => {
  git("init", "-q", "-b", "main");
  expect(readHead(directory()), "a branch without commits").toBe(undefined);
  commit("one");
  expect(readHead(directory())).toEqual({ head: git("rev-parse", "HEAD"), branch: "main" });
  git("switch", "-qc", "topic/näme-1");
  commit("two");
  git("pack-refs", "--all");
  expect(fs.existsSync(join(directory(), "refs/heads/topic/näme-1"))).toBe(false);
  expect(readHead(directory())).toEqual({ head: git("rev-parse", "HEAD"), branch: "topic/näme-1" });
  commit("three");
  expect(readHead(directory())).toEqual({ head: git("rev-parse", "HEAD"), branch: "topic/näme-1" });
  git("switch", "-q", "--detach", "main");
  expect(readHead(directory())).toEqual({ head: git("rev-parse", "main"), branch: null });
});

it("leaves everything unusual to git", () => {
  git("init", "-q", "-b", "main");
  commit("one");
  const head = join(directory(), "HEAD");
  for (const text of [
    "",
    "ref: refs/tags/x",
    "ref: refs/heads/../../secret",
    "ref: refs/heads/a//b",
    "nonsense",
  ]) {
    fs.writeFileSync(head, text);
    expect(readHead(directory()), text).toBe(undefined);
  }
  fs.rmSync(head);
  fs.symlinkSync("refs/heads/main", head);
  expect(readHead(directory())).toBe(undefined);
  fs.rmSync(head);
  execFileSync("mkfifo", [head]);
  expect(readHead(directory())).toBe(undefined);
});
