// Git repositories that change while they are captured: every restored repository is complete.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CheckpointResult } from "../../src/snapshot/operations/checkpoint.ts";
import { startChild } from "./child.ts";
import { createLab, type Lab, removeTree } from "./lab.ts";
import { beforeReading, racingDisk } from "./race-moments.ts";

const noPruning = { document: { retention: { auto: false } } };

function git(directory: string, ...args: string[]): string {
  const who = [
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@a",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
  ];
  return execFileSync("git", ["-C", directory, ...who, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
}

let counter = 0;

function commit(directory: string): void {
  counter += 1;
  for (const name of ["a", "b", "c"])
    fs.writeFileSync(join(directory, `${name}.txt`), `${name} ${counter}\n`);
  git(directory, "add", "-A");
  git(directory, "commit", "-qm", `commit ${counter}`);
}

function createRepository(directory: string): string {
  fs.mkdirSync(directory, { recursive: true });
  git(directory, "init", "-q", "-b", "main");
  commit(directory);
  return directory;
}

/** The repository has everything that its refs, HEAD, index and logs name. */
function expectComplete(directory: string): void {
  git(directory, "fsck", "--full", "--strict", "--no-dangling", "--no-progress");
  git(directory, "rev-parse", "--verify", "HEAD^{tree}");
}

async function captureWhile(lab: Lab, act: () => void) {
  return lab.with({ ...noPruning, machine: { disk: racingDisk({ beforePacking: act }) } }).checkpoint();
}

async function expectRestored(lab: Lab, id: string, ...repositories: string[]): Promise<string> {
  const directory = await lab.restored(id);
  for (const path of repositories) expectComplete(join(directory, path));
  return directory;
}

describe("a git repository that changes between the walk and the packing", () => {
  const changes: Record<string, (directory: string) => void> = {
    "a commit": commit,
    "many commits": (directory) => {
      for (let i = 0; i < 8; i += 1) commit(directory);
    },
    "a new branch": (directory) => {
      git(directory, "checkout", "-q", "-b", `branch/${counter}`);
      commit(directory);
    },
    "staged files": (directory) => {
      fs.writeFileSync(join(directory, "staged.txt"), `staged ${counter}`);
      git(directory, "add", "-A");
    },
    gc: (directory) => {
      git(directory, "gc", "-q", "--prune=now");
    },
    "a commit and gc": (directory) => {
      commit(directory);
      git(directory, "gc", "-q", "--prune=now");
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`${name}: is complete in a first and a later checkpoint`, async () => {
      using lab = createLab(noPruning);
      const nested = createRepository(join(lab.worktree, "nested/deep"));
      createRepository(lab.worktree);
      git(lab.cell, "clone", "-q", "--bare", "--no-local", lab.worktree, "artifacts/bare.git");
      for (let i = 0; i < 2; i += 1) {
        // Written to before, so that the later checkpoint also reads the refs.
        for (const directory of [lab.worktree, nested]) commit(directory);
        git(join(lab.cell, "artifacts/bare.git"), "fetch", "-q", lab.worktree, `+main:copy/${i}`);
        const { ref, flaws } = await captureWhile(lab, () => {
          for (const directory of [lab.worktree, nested]) change(directory);
          git(join(lab.cell, "artifacts/bare.git"), "fetch", "-q", lab.worktree, `+HEAD:copy/${i}`);
        });
        expect(flaws).toEqual([]);
        removeTree(
          await expectRestored(lab, ref.id, "worktree", "worktree/nested/deep", "artifacts/bare.git"),
        );
      }
      await lab.verify();
      const quiet = await lab.checkpoint();
      expect(quiet.flaws).toEqual([]);
      const directory = await expectRestored(lab, quiet.ref.id, "worktree", "worktree/nested/deep");
      expect(git(join(directory, "worktree"), "status", "--porcelain")).toBe(
        git(lab.worktree, "status", "--porcelain"),
      );
    });
  }

  const moments: Record<string, (lab: Lab, act: () => void) => Promise<CheckpointResult>> = {
    "between walk and packing": captureWhile,
    "by the time the walk reads their directory": (lab, act) =>
      beforeReading(join(lab.worktree, ".git/refs/heads"), lab.checkpoint, act),
  };
  for (const [moment, capture] of Object.entries(moments)) {
    it(`refs that are packed ${moment} are not lost`, async () => {
      using lab = createLab(noPruning);
      createRepository(lab.worktree);
      for (let i = 0; i < 2; i += 1) {
        git(lab.worktree, "branch", `side/${i}`);
        commit(lab.worktree);
        const { ref, flaws } = await capture(lab, () => void git(lab.worktree, "pack-refs", "--all"));
        expect(flaws).toEqual([]);
        const directory = await expectRestored(lab, ref.id, "worktree");
        const names = (repository: string) =>
          git(repository, "for-each-ref", "--format=%(refname) %(objectname)");
        expect(names(join(directory, "worktree"))).toBe(names(lab.worktree));
      }
    });
  }

  it("one whose objects are packed again in every round is listed", async () => {
    using lab = createLab(noPruning);
    createRepository(lab.worktree);
    const disk = racingDisk({});
    let repacks = 0;
    const busy = lab.with({
      ...noPruning,
      machine: {
        disk: {
          ...disk,
          create(path, mode) {
            if (/\/scratch\/layer$/.test(String(path))) {
              repacks += 1;
              commit(lab.worktree);
              git(lab.worktree, "repack", "-adq");
            }
            return disk.create(path, mode);
          },
        },
      },
    });
    const { ref, flaws } = await busy.checkpoint();
    expect(repacks).toBeLessThan(10);
    if (flaws.length === 0) await expectRestored(lab, ref.id, "worktree");
    else expect(flaws).toEqual([expect.objectContaining({ path: "worktree/.git", kind: "torn" })]);
    await expectRestored(lab, (await lab.checkpoint()).ref.id, "worktree");
    await lab.verify();
  });
});

it("a process that never stops committing leaves every checkpoint with a repository that is complete or listed", async () => {
  using lab = createLab({ ...noPruning, aheadMs: 0 });
  createRepository(lab.worktree);
  {
    await using _ = await startChild("committing.ts", lab.worktree);
    for (let i = 0; i < 8; i += 1) {
      const { ref, flaws } = await lab.checkpoint();
      if (!flaws.some(({ path }) => path === "worktree/.git"))
        removeTree(await expectRestored(lab, ref.id, "worktree"));
    }
  }
  await lab.verify();
});
