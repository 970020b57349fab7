// One damage round: copy a small vault, flip one bit or truncate one file at an offset chosen by the seed, then check what
// verify and restore do. Shared by the normal suite and the soak test.
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { initCell } from "../../src/cell/init.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import type { MissionContext } from "../../src/snapshot/mission-context.ts";
import type { CheckpointRef } from "../../src/snapshot/model/entry.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { createRandom, type Random } from "../../src/testing/index.ts";
import { fixtureContext, seededMachine } from "./hand-made.ts";

export interface Pristine extends Disposable {
  readonly home: string;
  readonly refs: readonly CheckpointRef[];
  /** Content of the worktree at each checkpoint, by id. */
  readonly trees: ReadonlyMap<string, Tree>;
}

type Tree = Readonly<Record<string, string>>;

const MISSION = "m";
const SETTINGS = { retention: { auto: false } };

/** A cell with three checkpoints: a base and two deltas, the second of which changes every file. */
export async function makePristine(): Promise<Pristine> {
  const home = mkdtempSync(join(tmpdir(), "lazarus-pristine-"));
  const machine = seededMachine();
  const context = fixtureContext(machine, home, MISSION, SETTINGS);
  initCell(machine, context.config, context.mission);
  const worktree = join(context.cellRoot, "worktree");
  const refs: CheckpointRef[] = [];
  const trees = new Map<string, Tree>();
  const save = async () => {
    await machine.clock.advance(60_000);
    const { ref } = await takeCheckpoint(context, { reason: "manual" });
    refs.push(ref);
    trees.set(ref.id, readTree(worktree));
  };
  const noise = createRandom(7);
  for (let i = 0; i < 12; i += 1) writeFileSync(join(worktree, `f${i}`), `file ${i}\n`.repeat(1 + i * 20));
  writeFileSync(join(worktree, "noise"), noise.bytes(20_000));
  await save();
  writeFileSync(join(worktree, "f3"), "changed once\n");
  rmSync(join(worktree, "f4"));
  await save();
  for (const name of readdirSync(worktree))
    writeFileSync(join(worktree, name), `all new ${name}\n`.repeat(30));
  await save();
  // Now the cell differs from every checkpoint, so that a restore has to write every file.
  for (const name of readdirSync(worktree)) writeFileSync(join(worktree, name), `now ${name}\n`);
  return { home, refs, trees, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) };
}

/** Runs `work` on a copy of the pristine home, including its stat store. */
export async function withCopy<T>(
  pristine: Pristine,
  work: (context: MissionContext) => Promise<T>,
): Promise<T> {
  const home = mkdtempSync(join(tmpdir(), "lazarus-copy-"));
  try {
    cpSync(pristine.home, home, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    return await work(fixtureContext(seededMachine(2), home, MISSION, SETTINGS));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

export interface Damage {
  readonly file: string;
  readonly what: string;
  /** False if no data is lost: the newline at the end of a JSON file. */
  readonly matters: boolean;
}

export async function damageRound(pristine: Pristine, seed: number): Promise<Damage> {
  const random = createRandom(seed);
  const home = mkdtempSync(join(tmpdir(), "lazarus-damage-"));
  try {
    cpSync(pristine.home, home, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    const context = fixtureContext(seededMachine(seed), home, MISSION, SETTINGS);
    // Without the stat store, the next checkpoint must read the vault itself.
    rmSync(context.cacheDirectory, { recursive: true, force: true });
    const worktree = join(context.cellRoot, "worktree");
    const damage = damageVault(random, context.vault.root);
    const label = `seed ${seed}: ${damage.what}`;

    const { findings, hurt, newestGood } = await verifyVault(context.vault, { deep: true });
    expect(
      findings.length > 0,
      `${label}; verify --deep ${findings.length > 0 ? "reports harmless damage" : "finds nothing"}`,
    ).toBe(damage.matters);

    const target = random.pick(pristine.refs);
    const before = readTree(worktree);
    try {
      await restoreCell(context, { checkpoint: target.id });
      // The damage may be in bytes that this checkpoint does not need; then the restore must be exact.
      expect(readTree(worktree), label).toEqual(pristine.trees.get(target.id));
    } catch (error) {
      if (!(error instanceof LazarusError)) throw error;
      expect(error.kind, `${label}: ${error.message}`).toBe("damaged");
      const indexHit = damage.file.endsWith("index.json");
      // Damage elsewhere, especially in the newest checkpoint, is no reason to refuse a good one.
      expect(
        indexHit || hurt.includes(target.id),
        `${label}: ${target.id} is good and was refused: ${error.message}`,
      ).toBe(true);
      expect(readTree(worktree), `${label}: refused, but the cell was touched`).toEqual(before);
      if (hurt.length > 0 && newestGood !== null && !indexHit) {
        const text = `${error.message} ${error.hint} ${JSON.stringify(error.details)}`;
        expect(text, `${label}: the newest good one is not named`).toContain(newestGood);
      }
    }
    return damage;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Flips a bit or truncates a file at a random place of the vault. */
function damageVault(random: Random, root: string): Damage {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.startsWith("lazarus") && statSync(join(root, name)).isFile())
    .sort()
    .map((name) => ({ name, file: join(root, name), size: statSync(join(root, name)).size }));
  // Small files have extra weight; otherwise the index would hardly ever be hit.
  const weight = ({ size }: { size: number }) => size + 600;
  const tickets = files.flatMap((each, i) => Array.from({ length: Math.ceil(weight(each) / 100) }, () => i));
  const chosen = files[random.pick(tickets)]!;
  const { file, name, size } = chosen;
  if (random.chance(0.25)) {
    const length = random.int(0, size - 1);
    const lastByte = readFileSync(file)[size - 1];
    truncateSync(file, length);
    return {
      file,
      what: `${name} cut from ${size} to ${length} bytes`,
      matters: length < size - 1 || lastByte !== 0x0a,
    };
  }
  const bytes = readFileSync(file);
  const at = random.int(0, size - 1);
  const bit = random.int(0, 7);
  bytes[at]! ^= 1 << bit;
  writeFileSync(file, bytes);
  return { file, what: `bit ${bit} of byte ${at} of ${size} in ${name} flipped`, matters: true };
}

function readTree(worktree: string): Tree {
  const names = readdirSync(worktree).sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(worktree, name), "latin1")]));
}
