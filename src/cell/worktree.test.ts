// `init --repo`: a clone or a linked worktree, and that a failed or concurrent one loses nothing.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createFaultyDisk } from "../testing/faulty-disk.ts";
import { fillWorktree, type RepositorySource } from "./worktree.ts";

let directory: string;
let repo: string;
let worktree: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-worktree-"));
  repo = join(directory, "repo");
  worktree = join(directory, "cell", "worktree");
  mkdirSync(worktree, { recursive: true });
  git("init", "--quiet", "--initial-branch=main", repo);
  writeFileSync(join(repo, "code.txt"), "main\n");
  inRepo("add", ".");
  inRepo("commit", "--quiet", "-m", "one");
  inRepo("branch", "side");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function git(...args: string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
  return execFileSync("git", [...identity, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}
const inRepo = (...args: string[]) => git("-C", repo, ...args);
const fill = (source: Partial<RepositorySource> = {}, disk = systemDisk) =>
  fillWorktree(disk, worktree, { repo, ...source }, directory);

describe("the worktree of a new cell", () => {
  it("is a clone of a repository", () => {
    fill();
    expect(readFileSync(join(worktree, "code.txt"), "utf8")).toBe("main\n");
    expect(git("-C", worktree, "remote", "get-url", "origin")).toBe(repo);
    expect(readdirSync(join(directory, "cell"))).toEqual(["worktree"]);
  });

  it("is on the requested branch", () => {
    fill({ branch: "side" });
    expect(git("-C", worktree, "branch", "--show-current")).toBe("side");
  });

  it("accepts a path relative to the current directory", () => {
    fill({ repo: "repo" });
    expect(readdirSync(worktree)).toContain("code.txt");
  });

  it("can be a linked worktree: detached, or on its own branch", () => {
    fill({ link: true });
    expect(git("-C", worktree, "branch", "--show-current")).toBe("");
    expect(inRepo("worktree", "list")).toContain(worktree);
  });

  it("linked, is on the requested branch", () => {
    fill({ link: true, branch: "side" });
    expect(git("-C", worktree, "branch", "--show-current")).toBe("side");
  });
});

describe("nothing is lost when", () => {
  it("the worktree is not empty", () => {
    writeFileSync(join(worktree, "work"), "hours");
    expect(fill).toThrow(expect.objectContaining({ code: "WORKTREE_NOT_EMPTY" }));
    expect(readdirSync(worktree)).toEqual(["work"]);
  });

  it("git cannot clone: the worktree stays empty and git's message is shown", () => {
    expect(() => fill({ repo: join(directory, "none") })).toThrow(
      expect.objectContaining({ code: "GIT_FAILED", message: expect.stringContaining("does not exist") }),
    );
    expect(() => fill({ branch: "none" })).toThrow(expect.objectContaining({ code: "GIT_FAILED" }));
    expect(readdirSync(join(directory, "cell"))).toEqual(["worktree"]);
    expect(readdirSync(worktree)).toEqual([]);
  });

  it("the repository name looks like an option", () => {
    expect(() => fill({ repo: `--upload-pack=touch ${directory}/pwned` })).toThrow(
      expect.objectContaining({ code: "GIT_FAILED" }),
    );
    expect(readdirSync(directory)).not.toContain("pwned");
  });

  it("another process filled it in the meantime", () => {
    const slow = createFaultyDisk({
      ...systemDisk,
      rename(from, to) {
        writeFileSync(join(worktree, "theirs"), "theirs");
        systemDisk.rename(from, to);
      },
    });
    expect(() => fill({}, slow)).toThrow(expect.objectContaining({ code: "WORKTREE_NOT_EMPTY" }));
    expect(readdirSync(worktree)).toEqual(["theirs"]);
    expect(readdirSync(join(directory, "cell"))).toEqual(["worktree"]);
  });

  it("another clone is running; the remains of a dead one are removed", () => {
    const alive = join(directory, "cell", `.lazarus-clone-${process.ppid}`);
    mkdirSync(alive);
    mkdirSync(join(directory, "cell", ".lazarus-clone-4194304"));
    fill();
    expect(readdirSync(join(directory, "cell")).sort()).toEqual([
      `.lazarus-clone-${process.ppid}`,
      "worktree",
    ]);
  });
});
