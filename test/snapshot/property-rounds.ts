// One run of the property "restoring a checkpoint gives the captured tree", from a seed: create a hostile tree, then edit
// it and take checkpoints in turns; at the end restore every checkpoint and compare it using an independent lister.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { statStoreFile } from "../../src/snapshot/scan/stat-store.ts";
import { createRandom, type Random } from "../../src/testing/index.ts";
import { createHostileTree, type HostileTreeOptions } from "./hostile-tree.ts";
import { createLab, type Lab, type LabOptions, listCell, OLD_MS, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";

export interface Profile {
  readonly lab?: LabOptions;
  readonly tree?: HostileTreeOptions;
  readonly size: number;
  readonly rounds: number;
  readonly editsPerRound: number;
  /** The worktree is a git repository with another one inside. */
  readonly git?: boolean;
  /** Damages the stat store between checkpoints. */
  readonly damageCache?: boolean;
}

export const PROFILES: Readonly<Record<string, Profile>> = {
  "when only stat shows what changed": { size: 60, rounds: 4, editsPerRound: 25, lab: { aheadMs: OLD_MS } },
  "when the stat of every file is too recent to be trusted": {
    size: 40,
    rounds: 4,
    editsPerRound: 15,
    lab: { aheadMs: 0, document: { snapshot: { compression: "zstd" } } },
  },
  "through many layers, with secrets": {
    size: 15,
    rounds: 13,
    editsPerRound: 3,
    tree: { secrets: true, maxBytes: 5000 },
  },
  "when the stat store is lost, torn or stale": { size: 30, rounds: 6, editsPerRound: 8, damageCache: true },
  "with large files and workers": { size: 40, rounds: 3, editsPerRound: 15, tree: { maxBytes: 7 << 20 } },
  "with git repositories": { size: 25, rounds: 4, editsPerRound: 10, git: true },
};

/** `outside`: a directory for a worktree in place; every checkpoint is then also restored in place. */
export async function runProperty(seed: number, profile: Profile, outside?: string): Promise<void> {
  const random = createRandom(seed);
  using lab = createLab({ ...profile.lab, ...(outside === undefined ? {} : { outside }) });
  const isFar = outside !== undefined && fs.statSync(outside).dev !== fs.statSync(lab.directory).dev;
  if (profile.git) createRepositories(lab);
  const tree = createHostileTree(lab.worktree, random, profile.tree);
  for (let i = 0; i < profile.size; i += 1) tree.add();
  const expected: { id: string; tree: string[] }[] = [];
  const caches: Buffer[] = [];
  for (let round = 0; round < profile.rounds; round += 1) {
    if (round > 0) for (let i = 0; i < profile.editsPerRound; i += 1) tree.edit();
    if (profile.damageCache) damageCache(lab, random, caches);
    const before = listCell(lab, "worktree/.git");
    const { ref, flaws } = await lab.checkpoint();
    // Edits also hit the nested repository, so git may report it as broken.
    const unexpected = flaws.filter(({ path, reason }) => path !== "worktree" || !reason.startsWith("git "));
    expect(unexpected, `seed ${seed}, round ${round}`).toEqual([]);
    expect(listCell(lab, "worktree/.git"), `seed ${seed}: the checkpoint changed the cell`).toEqual(before);
    // Git's own directory is written by the checkpoint itself, before it is captured.
    expected.push({ id: ref.id, tree: profile.git ? listCell(lab) : before });
  }
  for (const { id, tree } of outside === undefined ? [] : expected.toReversed()) {
    const { flaws } = await restoreCell(lab.context, { checkpoint: id });
    expect(flaws, `seed ${seed}`).toEqual([]);
    expect(difference(tree, listCell(lab)), `seed ${seed}: ${id} is not restored in place`).toEqual([]);
  }
  // Another file system may round holes differently.
  for (const [round, { id, tree }] of isFar ? [] : expected.entries()) {
    const directory = await lab.restored(id);
    const got = listTree(directory);
    expect(difference(tree, got), `seed ${seed}: checkpoint ${round} differs from the captured tree`).toEqual(
      [],
    );
    removeTree(directory);
  }
  await lab.verify();
}

function difference(wanted: readonly string[], got: readonly string[]): string[] {
  const [a, b] = [new Set(wanted), new Set(got)];
  return [
    ...wanted.filter((line) => !b.has(line)).map((line) => `- ${line}`),
    ...got.filter((line) => !a.has(line)).map((line) => `+ ${line}`),
  ];
}

function createRepositories(lab: Lab): void {
  // Without background maintenance, which creates and removes a lock file after a commit.
  const options = ["user.name=t", "user.email=t@t", "maintenance.auto=false"];
  const settings = options.flatMap((each) => ["-c", each]);
  const git = (directory: string, ...args: string[]) =>
    execFileSync("git", [...settings, ...args], { cwd: directory, stdio: "ignore" });
  const nested = join(lab.worktree, "nested");
  fs.mkdirSync(nested);
  for (const directory of [lab.worktree, nested]) {
    git(directory, "init", "-q");
    fs.writeFileSync(join(directory, "tracked"), "tracked\n");
  }
  git(nested, "add", "-A");
  git(nested, "commit", "-qm", "one");
}

function damageCache(lab: Lab, random: Random, caches: Buffer[]): void {
  const file = statStoreFile(lab.context.cacheDirectory);
  if (!fs.existsSync(file)) return;
  const bytes = fs.readFileSync(file);
  caches.push(bytes);
  const flipped = Buffer.from(bytes);
  flipped[random.int(0, bytes.length - 1)]! ^= 1 << random.int(0, 7);
  random.pick([
    () => fs.rmSync(file),
    () => fs.writeFileSync(file, flipped),
    () => fs.writeFileSync(file, bytes.subarray(0, random.int(0, bytes.length))),
    () => fs.writeFileSync(file, random.pick(caches)),
    () => fs.writeFileSync(file, "rubbish"),
    () => {},
  ])();
}
