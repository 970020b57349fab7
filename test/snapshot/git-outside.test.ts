// Repositories of a cell whose HEAD, index or objects are elsewhere: a checkpoint holds a copy, which is used once the
// original is gone; without a copy it says what it does not hold.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { createLab, type Lab } from "./lab.ts";

function git(directory: string, ...args: string[]): string {
  const who = ["-c", "user.name=a", "-c", "user.email=a@a", "-c", "protocol.file.allow=always"];
  return execFileSync("git", ["-C", directory, ...who, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
}

/** A repository next to the cell. */
function createOrigin(lab: Lab): string {
  const origin = join(lab.directory, "origin");
  git(lab.directory, "init", "-q", "-b", "main", origin);
  fs.writeFileSync(join(origin, "file"), "content");
  git(origin, "add", "-A");
  git(origin, "commit", "-qm", "first");
  return origin;
}

/** The flaws of a first checkpoint, an unchanged one and one with another change. */
async function expectFlaws(lab: Lab, wanted: readonly (readonly [path: string, outside: string])[]) {
  const named = wanted.map(([path, outside]) => ({
    path,
    kind: "degraded",
    reason: expect.stringContaining(`${outside}, outside the cell`),
  }));
  for (const outcome of ["captured", "unchanged", "captured"]) {
    if (outcome === "captured") fs.appendFileSync(join(lab.cell, "notes"), "more");
    const result = await lab.checkpoint();
    expect(result.outcome).toBe(outcome);
    expect(result.flaws).toEqual(named);
  }
}

/** What git says about a worktree and its history. */
function describeRepository(worktree: string): string[] {
  git(worktree, "fsck", "--full", "--strict");
  return [
    git(worktree, "for-each-ref", "refs/heads", "refs/remotes", "refs/tags"),
    git(worktree, "log", "--format=%H %s"),
    git(worktree, "status", "--porcelain=v2", "--branch", "--untracked-files=all"),
    git(worktree, "diff", "--cached"),
  ];
}

/** A linked worktree with a commit, a staged file, a change and an untracked file. */
function linkWorktree(lab: Lab, origin: string): void {
  fs.rmdirSync(lab.worktree);
  git(origin, "worktree", "add", "-q", "-b", "side", lab.worktree);
  fs.writeFileSync(join(lab.worktree, "file"), "of the branch");
  git(lab.worktree, "commit", "-qam", "on the branch");
  fs.writeFileSync(join(lab.worktree, "staged"), "staged only");
  git(lab.worktree, "add", "staged");
  fs.writeFileSync(join(lab.worktree, "staged"), "and changed");
  fs.writeFileSync(join(lab.worktree, "untracked"), "new");
}

const listOf = (directory: string) =>
  execFileSync("find", [directory, "-printf", "%p %s %T@ %C@\n"], { encoding: "utf8" });

it("a linked worktree is held completely, and works after its repository is gone", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  const before = describeRepository(lab.worktree);
  await expectFlaws(lab, []);
  const { ref } = await lab.checkpoint();
  await lab.verify();
  fs.rmSync(origin, { recursive: true });
  const elsewhere = join(await lab.restored(ref.id), "worktree");
  expect(describeRepository(elsewhere)).toEqual(before);
  // In place, and as a cell that is missing.
  const pointer = fs.readFileSync(join(lab.worktree, ".git"));
  const losses = {
    nothing: () => {},
    "a file": () => fs.rmSync(join(lab.worktree, "staged")),
    "the cell": () => fs.rmSync(lab.cell, { recursive: true }),
  };
  for (const lose of Object.values(losses)) {
    fs.writeFileSync(join(lab.worktree, ".git"), pointer);
    lose();
    await restoreCell(lab.context, { checkpoint: ref.id });
    expect(describeRepository(lab.worktree)).toEqual(before);
  }
  git(lab.worktree, "commit", "-qam", "later");
  expect((await lab.checkpoint()).flaws).toEqual([]);
});

it("commits, staged files and an interrupted merge of a linked worktree are in the next checkpoint", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  await lab.checkpoint();
  git(lab.worktree, "commit", "-qam", "more");
  git(lab.worktree, "branch", "gone");
  await lab.checkpoint();
  git(lab.worktree, "branch", "-D", "gone");
  git(lab.worktree, "checkout", "-q", "--detach");
  git(lab.worktree, "commit", "-q", "--allow-empty", "-m", "detached");
  fs.writeFileSync(join(origin, "file"), "conflict");
  git(origin, "commit", "-qam", "conflict");
  expect(() => git(lab.worktree, "merge", "-q", "main")).toThrow();
  const before = describeRepository(lab.worktree);
  const { ref, flaws } = await lab.checkpoint();
  expect(flaws).toEqual([]);
  fs.rmSync(origin, { recursive: true });
  const elsewhere = join(await lab.restored(ref.id), "worktree");
  expect(describeRepository(elsewhere)).toEqual(before);
  git(elsewhere, "merge", "--abort");
  expect(git(elsewhere, "log", "-1", "--format=%s")).toBe("detached");
});

it("a repository that is still there is not written to by a restore, and a copy of the cell does not share it", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  const { ref } = await lab.checkpoint();
  fs.writeFileSync(join(lab.worktree, "file"), "later");
  const pointer = fs.readFileSync(join(lab.worktree, ".git"), "utf8");
  await lab.checkpoint();
  const listed = listOf(join(origin, ".git/worktrees"));
  const heads = git(origin, "for-each-ref", "refs/heads");
  await restoreCell(lab.context, { checkpoint: ref.id });
  expect(fs.readFileSync(join(lab.worktree, ".git"), "utf8")).toBe(pointer);
  const elsewhere = join(await lab.restored(ref.id), "worktree");
  git(elsewhere, "commit", "-qam", "in the copy");
  expect(git(elsewhere, "rev-parse", "--git-dir")).toContain("state/git-outside");
  expect(listOf(join(origin, ".git/worktrees"))).toBe(listed);
  expect(git(origin, "for-each-ref", "refs/heads")).toBe(heads);
});

it("forks and imports of a cell with a linked worktree have their own repository", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  fs.mkdirSync(join(lab.cell, "meta"), { recursive: true });
  fs.writeFileSync(join(lab.cell, "meta/mission.json"), "{}");
  const before = describeRepository(lab.worktree);
  const { ref } = await lab.checkpoint();
  using fork = lab.with({ mission: "fork" });
  const { warnings, flaws } = await forkMission(lab.context, fork.context, {});
  expect({ warnings, flaws }).toEqual({ warnings: [], flaws: [] });
  const archive = join(lab.directory, "cell.tar.gz");
  await exportToFile(lab.context, ref, archive);
  using imported = lab.with({ mission: "imported" });
  const made = await importCell(imported.context, { source: archive, owners: false });
  expect(made.flaws).toEqual([]);
  git(origin, "worktree", "remove", "--force", lab.worktree);
  for (const { worktree } of [fork, imported]) {
    expect(describeRepository(worktree)).toEqual(before);
    expect(git(worktree, "rev-parse", "--git-dir")).toContain("state/git-outside");
  }
});

it("borrowed objects are held, in the worktree and in a nested repository", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  git(lab.directory, "clone", "-q", "--shared", origin, lab.worktree);
  const bare = join(lab.cell, "artifacts/bare.git");
  git(lab.directory, "clone", "-q", "--shared", "--bare", origin, bare);
  fs.writeFileSync(join(lab.worktree, "file"), "own");
  git(lab.worktree, "commit", "-qam", "own");
  const before = describeRepository(lab.worktree);
  await expectFlaws(lab, []);
  const { ref } = await lab.checkpoint();
  const shared = await lab.restored(ref.id);
  expect(describeRepository(join(shared, "worktree"))).toEqual(before);
  fs.rmSync(origin, { recursive: true });
  const restored = await lab.restored(ref.id);
  expect(describeRepository(join(restored, "worktree"))).toEqual(before);
  git(join(restored, "artifacts/bare.git"), "fsck", "--full", "--strict");
});

it("a git directory that is a link out of the cell is held too", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  fs.mkdirSync(join(lab.worktree, "nested"));
  fs.symlinkSync(join(origin, ".git"), join(lab.worktree, "nested/.git"));
  fs.writeFileSync(join(lab.worktree, "nested/file"), "content");
  await expectFlaws(lab, []);
  const { ref } = await lab.checkpoint();
  fs.rmSync(origin, { recursive: true });
  const nested = join(await lab.restored(ref.id), "worktree/nested");
  expect(git(nested, "status", "--porcelain")).toBe("");
  expect(git(nested, "log", "--format=%s")).toBe("first");
});

it("what cannot be copied is named in every checkpoint", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  const gitDirectory = join(origin, ".git/worktrees/worktree");
  fs.renameSync(origin, `${origin}-gone`);
  const { flaws } = await lab.checkpoint();
  expect(flaws.find(({ path }) => path === "worktree/.git")).toMatchObject({
    kind: "degraded",
    reason: expect.stringContaining(`${gitDirectory}, outside the cell`),
  });
});

it("copies that the settings exclude do not count", async () => {
  using lab = createLab({ document: { snapshot: { exclude: ["git-outside"] } } });
  const origin = createOrigin(lab);
  linkWorktree(lab, origin);
  await expectFlaws(lab, [["worktree/.git", join(origin, ".git/worktrees/worktree")]]);
});

it("worktrees, submodules and borrowed objects inside the cell are not copied", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  git(lab.directory, "clone", "-q", origin, lab.worktree);
  git(lab.worktree, "worktree", "add", "-q", "--detach", join(lab.cell, "artifacts/side"));
  git(lab.worktree, "submodule", "add", "-q", origin, "sub");
  git(lab.directory, "clone", "-q", "--shared", lab.worktree, join(lab.cell, "artifacts/borrowing"));
  fs.writeFileSync(
    join(lab.cell, "artifacts/borrowing/.git/objects/info/alternates"),
    "../../../../worktree/.git/objects\n",
  );
  await expectFlaws(lab, []);
});
