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
import { fixtureContext, handMachine } from "./hand-made.ts";

export interface Pristine extends Disposable {
  readonly home: string;
  readonly refs: readonly CheckpointRef[];
  /** Content of the worktree at each checkpoint, by id. */
  readonly trees: ReadonlyMap<string, Tree>;
}

type Tree = Readonly<Record<string, string>>;

const MISSION = "m";
const SETTINGS = { retention: { auto: false } };

/** A cell in three checkpoints: a base, and two deltas of which the second stores everything again. */
export async function makePristine(): Promise<Pristine> {
  const home = mkdtempSync(join(tmpdir(), "lazarus-pristine-"));
  const machine = handMachine();
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
  // What is there now differs from all of them: every file would have to be restored.
  for (const name of readdirSync(worktree)) writeFileSync(join(worktree, name), `now ${name}\n`);
  return { home, refs, trees, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) };
}

/** The cell and vault of a pristine home, copied with the stat cache that goes with them. */
export async function withTwin<T>(
  pristine: Pristine,
  work: (context: MissionContext) => Promise<T>,
): Promise<T> {
  const home = mkdtempSync(join(tmpdir(), "lazarus-twin-"));
  try {
    cpSync(pristine.home, home, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    return await work(fixtureContext(handMachine(2), home, MISSION, SETTINGS));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

export interface Damage {
  readonly file: string;
  readonly what: string;
  /** False for what nobody can miss: the newline at the end of a JSON file. */
  readonly matters: boolean;
}

export async function damageRound(pristine: Pristine, seed: number): Promise<Damage> {
  const random = createRandom(seed);
  const home = mkdtempSync(join(tmpdir(), "lazarus-damage-"));
  try {
    cpSync(pristine.home, home, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    const context = fixtureContext(handMachine(seed), home, MISSION, SETTINGS);
    // As after a crash of the disk: the next checkpoint must look at the vault itself.
    rmSync(context.cacheDirectory, { recursive: true, force: true });
    const worktree = join(context.cellRoot, "worktree");
    const damage = spoil(random, context.vault.root);
    const said = `seed ${seed}: ${damage.what}`;

    const { findings, hurt, newestGood } = await verifyVault(context.vault, { deep: true });
    expect(
      findings.length > 0,
      `${said}; verify --deep ${findings.length > 0 ? "cries wolf" : "finds nothing"}`,
    ).toBe(damage.matters);

    const target = random.pick(pristine.refs);
    const before = readTree(worktree);
    try {
      await restoreCell(context, { checkpoint: target.id });
      // Bytes that this checkpoint does not need may be damaged: then what comes back must be exact.
      expect(readTree(worktree), said).toEqual(pristine.trees.get(target.id));
    } catch (error) {
      if (!(error instanceof LazarusError)) throw error;
      expect(error.kind, `${said}: ${error.message}`).toBe("damaged");
      const indexHit = damage.file.endsWith("index.json");
      // Damage elsewhere, in the newest checkpoint above all, is no reason to refuse a good one.
      expect(
        indexHit || hurt.includes(target.id),
        `${said}: ${target.id} is good and was refused: ${error.message}`,
      ).toBe(true);
      expect(readTree(worktree), `${said}: refused, but the cell was touched`).toEqual(before);
      if (hurt.length > 0 && newestGood !== null && !indexHit) {
        const told = `${error.message} ${error.hint} ${JSON.stringify(error.details)}`;
        expect(told, `${said}: the newest good one is not named`).toContain(newestGood);
      }
    }
    return damage;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Every byte of the vault is as likely as any other. */
function spoil(random: Random, root: string): Damage {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.startsWith("lazarus") && statSync(join(root, name)).isFile())
    .sort()
    .map((name) => ({ name, file: join(root, name), size: statSync(join(root, name)).size }));
  // Small files count for more than their bytes, or the index would hardly ever be hit.
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
