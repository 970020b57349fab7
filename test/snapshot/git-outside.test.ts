// Repositories of a cell whose HEAD, index or objects are elsewhere: every checkpoint says what it does not hold.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
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

it("a linked worktree is named with its git directory", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  fs.rmdirSync(lab.worktree);
  git(origin, "worktree", "add", "-q", "--detach", lab.worktree);
  await expectFlaws(lab, [["worktree/.git", join(origin, ".git/worktrees/worktree")]]);
});

it("borrowed objects are named, in the worktree and in a nested repository, until they are copied", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  git(lab.directory, "clone", "-q", "--shared", origin, lab.worktree);
  git(lab.directory, "clone", "-q", "--shared", "--bare", origin, join(lab.cell, "artifacts/bare.git"));
  const objects = join(origin, ".git/objects");
  await expectFlaws(lab, [
    ["artifacts/bare.git/objects/info/alternates", objects],
    ["worktree/.git/objects/info/alternates", objects],
  ]);
  for (const repository of [join(lab.worktree, ".git"), join(lab.cell, "artifacts/bare.git")]) {
    git(repository, "repack", "-adq");
    fs.rmSync(join(repository, "objects/info/alternates"));
  }
  const { ref, flaws } = await lab.checkpoint();
  expect(flaws).toEqual([]);
  fs.rmSync(origin, { recursive: true });
  git(join(await lab.restored(ref.id), "worktree"), "fsck", "--full", "--strict");
});

it("a git directory that is a link out of the cell is named", async () => {
  using lab = createLab();
  const origin = createOrigin(lab);
  fs.mkdirSync(join(lab.worktree, "nested"));
  fs.symlinkSync(join(origin, ".git"), join(lab.worktree, "nested/.git"));
  await expectFlaws(lab, [["worktree/nested/.git", join(origin, ".git")]]);
});

it("worktrees, submodules and borrowed objects inside the cell are not", async () => {
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
