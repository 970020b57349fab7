// One run of the property "every point equals the cell at that time" for files that grow, from a seed: appends, truncations, rewrites,
// links, renames and removals of long files between live points and ordinary checkpoints, through merges and prunes; at the
// end every checkpoint that is left is restored and compared.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { compactLayers } from "../../src/snapshot/vault/compact.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
import type { Checkpoint } from "../../src/snapshot/vault/manifest.ts";
import { createRandom, type Random } from "../../src/testing/index.ts";
import { createLab, type Lab, OLD_MS, removeTree } from "./lab.ts";

export interface ContinuedProfile {
  readonly livePoints: number;
  /** Afterwards: live points and ordinary checkpoints alternately, at random. */
  readonly mixed: number;
  readonly compression: "gzip" | "zstd";
}

const LIVE = { reason: "live", git: "deferred" } as const;
const NAMES = ["a.log", "b.log", ".env", "deep/c.log", "name\u00e9"];
/** A third is shorter than what is worth continuing. */
const LENGTHS = [10, 70_000, 200_000] as const;

export async function runContinued(seed: number, profile: ContinuedProfile): Promise<void> {
  const random = createRandom(seed);
  let offsetMs = OLD_MS;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs };
  const document = { snapshot: { compression: profile.compression }, retention: { keep_last: 3 } };
  using lab = createLab({ machine: { clock }, document });
  fs.mkdirSync(join(lab.worktree, "deep"));
  for (const name of NAMES) fs.writeFileSync(join(lab.worktree, name), bytes(random, 150_000));
  await lab.checkpoint();
  const expected = new Map<string, readonly string[]>();
  let continued = 0;
  for (let i = 0; i < profile.livePoints + profile.mixed; i += 1) {
    for (let edits = random.int(1, 3); edits > 0; edits -= 1) edit(lab, random);
    const isLive = i < profile.livePoints || random.int(0, 2) > 0;
    if (i >= profile.livePoints && random.int(0, 5) === 0) offsetMs += 40 * 60_000;
    const { ref, flaws, checkpoint } = await lab.checkpoint(isLive ? LIVE : {});
    expect(flaws, `seed ${seed}`).toEqual([]);
    expected.set(ref.id, digests(lab.worktree));
    continued += Number(checkpoint.layers.some((layer) => layer.isContinued));
    if (!isLive) expect(checkpoint.layers.some((layer) => layer.isContinued)).toBe(false);
    if (random.int(0, 3) === 0) await expectSameAfterMerge(lab, checkpoint, random);
  }
  expect(continued, `seed ${seed}: nothing was continued`).toBeGreaterThan(profile.livePoints / 2);
  await lab.verify();
  for (const ref of lab.context.vault.list().slice(1)) {
    const directory = await lab.restored(ref.id);
    expect(digests(join(directory, "worktree")), `seed ${seed}: ${ref.id} differs`).toEqual(
      expected.get(ref.id),
    );
    removeTree(directory);
  }
}

/** Merges any part of the chain, without publishing it. */
async function expectSameAfterMerge(lab: Lab, { layers }: Checkpoint, random: Random): Promise<void> {
  using _lock = await lab.context.vault.lock("merge");
  const from = random.int(0, layers.length - 1);
  const isWhole = random.int(0, 1) === 1;
  const merged = compactLayers(lab.context, layers, { from, isWhole });
  if (isWhole) expect(merged.slice(from).some((layer) => layer.isContinued)).toBe(false);
  using before = openContents(lab.context.vault, layers);
  using after = openContents(lab.context.vault, merged);
  expect([...after.listing.keys()].sort()).toEqual([...before.listing.keys()].sort());
  for (const [path, entry] of after.listing) {
    const { location: _a, ...known } = before.listing.get(path)!;
    const { location: _b, ...found } = entry;
    expect(found).toEqual(known);
    // Throws where the bytes do not match the digest.
    if (entry.type === "file") after.read(entry, () => {});
  }
}

function bytes(random: Random, length: number): Buffer {
  // Incompressible: merges depend on the size of layers.
  return createHash("shake256", { outputLength: length })
    .update(String(random.int(0, 1e9)))
    .digest();
}

function edit({ worktree }: Lab, random: Random): void {
  const file = join(worktree, random.pick(NAMES));
  const isThere = fs.existsSync(file);
  const size = isThere ? fs.statSync(file).size : 0;
  const other = join(worktree, `${random.pick(["x", "y"])}.log`);
  const append = () => fs.appendFileSync(file, bytes(random, random.int(1, 5000)));
  const isAppended = isThere && random.int(0, 2) > 0;
  const others = [
    append,
    () => fs.writeFileSync(file, bytes(random, random.pick(LENGTHS))),
    () => isThere && fs.truncateSync(file, random.int(0, size)),
    // A hole before what is appended.
    () => isThere && fs.truncateSync(file, size + random.int(1, 50_000)),
    () => {
      if (size === 0) return;
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, "changed", random.int(0, size - 1));
      fs.closeSync(fd);
      append();
    },
    () => {
      fs.rmSync(other, { force: true });
      if (isThere) fs.linkSync(file, other);
    },
    () => fs.rmSync(other, { force: true }),
    () => isThere && fs.renameSync(file, other),
    () => isThere && fs.copyFileSync(file, other),
    () => fs.rmSync(file, { force: true }),
  ];
  random.pick(isAppended ? [append] : others)();
}

/** Path, length, digest and number of names of every file. */
function digests(directory: string): string[] {
  return fs
    .readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => fs.statSync(join(directory, name)).isFile())
    .sort()
    .map((name) => {
      const { size, nlink } = fs.statSync(join(directory, name));
      const digest = createHash("sha256")
        .update(fs.readFileSync(join(directory, name)))
        .digest("hex");
      return `${name} ${size} ${nlink} ${digest}`;
    });
}
