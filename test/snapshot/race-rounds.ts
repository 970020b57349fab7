// The race harness: checkpoints and restores of a cell that changes at the same time. In a *planned* race the changes happen inside
// system calls of the operation itself, which the seed chooses, so that a failure can be replayed; in a *live* race another
// process makes them all the time. Checkpoints walk the cell or, in half of the planned races, only look at what a perfect
// watcher would have reported. Every published checkpoint is restored elsewhere and compared with the cell:
// - paths that nothing touched, as an independent lister saw them, are restored exactly;
// - every token is there exactly once, or a flaw names where it was, and no restore destroys the only copy of one;
// - a git repository is complete, and no older than before the checkpoint, or named;
// - a file that is written through a mapping is as it was at one moment;
// - nothing that links point to was read or changed.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { expect } from "vitest";
import { LazarusError } from "../../src/platform/errors.ts";
import type { DirtySet } from "../../src/snapshot/model/dirty-set.ts";
import type { Flaw } from "../../src/snapshot/model/entry.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { createRandom, type Random } from "../../src/testing/index.ts";
import { startChild } from "./child.ts";
import { dirtySince, type Moment, momentOf } from "./dirty-set.ts";
import { createLab, type Lab, listCell, OLD_MS, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";
import {
  fillTree,
  findTokens,
  git,
  INSIDE,
  mutate,
  OUTSIDE_CONTENT,
  pathsBelow,
  type RaceTree,
  raceTree,
} from "./race-mutations.ts";
import { canList } from "./real-cell.ts";

const canCompare = canList();

interface Race extends Disposable {
  readonly lab: Lab;
  readonly tree: RaceTree;
  readonly random: Random;
  /** The changes so far, for the message of a failure. */
  readonly log: string[];
}

function startRace(seed: number, place?: string): Race {
  const random = createRandom(seed);
  // With a clock ahead of the disk's, only the stat of a file shows whether it changed.
  const lab = createLab({
    aheadMs: random.pick([0, OLD_MS]),
    document: { retention: { auto: false } },
    ...(place === undefined ? {} : { outside: place }),
  });
  const tree = raceTree(place ?? lab.directory, lab.cell, lab.worktree);
  fillTree(tree, random);
  return { lab, tree, random, log: [], [Symbol.dispose]: () => lab[Symbol.dispose]() };
}

export interface PlannedOptions {
  /** A directory for a worktree in place. */
  readonly place?: string | undefined;
  /** Take all checkpoints but the first from a dirty set. */
  readonly isDirty?: boolean;
}

/** Checkpoints with changes in the middle of them, then a quiet one. */
export async function plannedRace(
  seed: number,
  checkpoints: number,
  { place, isDirty = false }: PlannedOptions = {},
): Promise<void> {
  using race = startRace(seed, place);
  const { lab, tree, random, log } = race;
  let then: Moment | undefined;
  /** What changed since the scan of the last checkpoint began. */
  const dirty = () => {
    const now = momentOf(lab);
    const changed = then !== undefined && isDirty ? dirtySince(then, now) : undefined;
    then = now;
    return changed;
  };
  await explain(seed, race, async () => {
    for (let i = 0; i < checkpoints; i += 1) {
      if (i > 0 && random.chance(0.5)) log.push(`before: ${mutate(tree, random)}`);
      const before = observe(race);
      const options = { git: false, dirty: dirty() };
      const { ref, flaws } = await duringCalls(race, () => lab.checkpoint(options));
      await checkCheckpoint(race, ref.id, flaws, before);
    }
    await checkQuiet(race, dirty());
  });
}

/** A restore in place with changes in the middle of it, then a quiet one. */
export async function plannedRestore(seed: number, place?: string): Promise<void> {
  using race = startRace(seed, place);
  const { lab, tree, random, log } = race;
  await explain(seed, race, async () => {
    const { ref } = await lab.checkpoint({ git: false });
    for (let i = 0; i < 6; i += 1) log.push(`before: ${mutate(tree, random, INSIDE)}`);
    const before = tokensOf(lab);
    const kept = [lab.cell, lab.worktree, tree.elsewhere];
    try {
      const { safety } = await duringCalls(race, () => restoreCell(lab.context, { checkpoint: ref.id }));
      if (safety !== null) kept.push(await lab.restored(safety.id));
    } catch (error) {
      // The cell may change so that the restore must be refused; a defect is never an error of this kind.
      if (!(error instanceof LazarusError) || error.code === "INTERNAL") throw error;
      log.push(`the restore was refused: ${error.message}`);
    }
    checkOutside(race);
    const contents = new Set(kept.flatMap(contentsBelow));
    for (const name of before.keys())
      expect(contents, `the restore destroyed the only copy of ${name}`).toContain(name.replace("-", " "));
    await restoreCell(lab.context, { checkpoint: ref.id });
    const wanted = await lab.restored(ref.id);
    if (canCompare) expect(ordinary(listCell(lab))).toEqual(ordinary(listTree(wanted)));
    expect([...tokensOf(lab).keys()]).toEqual(expect.arrayContaining([...findTokens(wanted).keys()]));
    await lab.verify();
  });
}

/** Checkpoints while another process changes the cell, then a quiet one. */
export async function liveRace(seed: number, checkpoints: number, place?: string): Promise<void> {
  using race = startRace(seed, place);
  const { lab, tree } = race;
  await explain(seed, race, async () => {
    {
      await using _ = await startChild(
        "race-mutator.ts",
        dirname(tree.outside),
        lab.cell,
        tree.root,
        String(seed),
      );
      for (let i = 0; i < checkpoints; i += 1) {
        const { ref, flaws } = await lab.checkpoint({ git: false });
        await checkCheckpoint(race, ref.id, flaws);
      }
    }
    await checkQuiet(race);
  });
}

/** Failures name their seed and what happened. */
async function explain(seed: number, race: Race, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const log = race.log.map((line) => `  ${line}`).join("\n");
    if (error instanceof Error) error.message = `race with seed ${seed}: ${error.message}\n${log}`;
    throw error;
  }
}

const CALLS = ["openSync", "readdirSync", "lstatSync", "renameSync"] as const;
/** A capture of this tree makes about 300 such calls. */
const CHANCE = 0.01;
const MAX_CHANGES = 5;

/** Runs an operation, and changes the tree right before some of its system calls. */
async function duringCalls<T>({ tree, random, log }: Race, operation: () => Promise<T>): Promise<T> {
  const originals = CALLS.map((name) => [name, fs[name]] as const);
  let changes = 0;
  let isBusy = false;
  for (const [name, original] of originals) {
    const wrapped = (...args: unknown[]) => {
      if (!isBusy && changes < MAX_CHANGES && random.chance(CHANCE)) {
        isBusy = true;
        changes += 1;
        log.push(`before ${name} ${String(args[0])}: ${mutate(tree, random)}`);
        isBusy = false;
      }
      return (original as (...args: unknown[]) => unknown)(...args);
    };
    Object.assign(fs, { [name]: wrapped });
  }
  syncBuiltinESMExports();
  try {
    return await operation();
  } finally {
    Object.assign(fs, Object.fromEntries(originals));
    syncBuiltinESMExports();
  }
}

interface Observation {
  readonly lines: ReadonlyMap<string, string>;
  readonly tokens: ReadonlyMap<string, readonly string[]>;
  /** HEAD of the repository; undefined without git. */
  readonly head: string | undefined;
}

/** The cell while nothing changes it. */
function observe({ lab, tree }: Race): Observation {
  const head = fs.existsSync(tree.repository) ? git(tree.repository, "rev-parse", "HEAD") : undefined;
  return { lines: linesOf(() => listCell(lab)), tokens: tokensOf(lab), head };
}

/** Tokens of cell and worktree, with their paths in a checkpoint. */
function tokensOf({ cell, worktree }: Lab): Map<string, string[]> {
  const tokens = findTokens(cell);
  if (worktree === join(cell, "worktree")) return tokens;
  for (const [name, paths] of findTokens(worktree))
    tokens.set(name, [...(tokens.get(name) ?? []), ...paths.map((path) => join("worktree", path))]);
  return tokens;
}

/** The repository and the mapped file of a restored checkpoint. */
function checkOthers(
  { lab, tree }: Race,
  directory: string,
  isNamed: (paths: readonly string[]) => boolean,
  before: Observation | undefined,
): void {
  const inCell = (path: string) => relative(lab.cell, path);
  const repository = join(directory, inCell(tree.repository));
  if (fs.existsSync(tree.repository) && !isNamed([`${inCell(tree.repository)}/.git`])) {
    git(repository, "fsck", "--full", "--strict");
    if (before?.head !== undefined) git(repository, "merge-base", "--is-ancestor", before.head, "HEAD");
  }
  if (before !== undefined) {
    const content = fs.readFileSync(join(directory, inCell(tree.mapped)), "utf8");
    expect(content, "the mapped file is torn").toBe(content[0]!.repeat(content.length));
  }
}

/** One line per path, from the independent lister. Directories change when something next to a file does. */
function linesOf(list: () => readonly string[]): Map<string, string> {
  if (!canCompare) return new Map();
  const rows = list().map((line) => [String(JSON.parse(line).path), line] as const);
  return new Map(rows.filter(([, line]) => !line.includes('"type": "dir"')));
}

/** `before` is what was observed before a planned race; the cell is quiet again. */
async function checkCheckpoint(
  race: Race,
  id: string,
  flaws: readonly Flaw[],
  before?: Observation,
): Promise<void> {
  const { lab } = race;
  const directory = join(lab.directory, `restored-${id}`);
  const restored = await restoreTo(lab.context, { checkpoint: id, directory });
  expect(restored.flaws).toEqual([]);
  checkOutside(race, directory);
  const tokens = findTokens(directory);
  const isNamed = (paths: readonly string[]) =>
    flaws.some(({ path }) => paths.some((each) => each === path || each.startsWith(`${path}/`)));
  checkOthers(race, directory, isNamed, before);
  for (const [name, paths] of tokens)
    if (paths.length > 1) expect(isNamed(paths), `${name} is there twice: ${paths}`).toBe(true);
  if (before !== undefined) {
    const after = observe(race);
    for (const [name, old] of before.tokens) {
      const now = after.tokens.get(name);
      // One that was moved out of the cell need not be saved.
      if (tokens.has(name) || now === undefined || wasOutside(race)) continue;
      expect(
        isNamed([...old, ...now]),
        `${name} is lost: it was ${old}, then ${now}; ${JSON.stringify(flaws)}`,
      ).toBe(true);
    }
    const lines = linesOf(() => listTree(directory));
    for (const [path, line] of before.lines)
      if (basename(path) === "static" && after.lines.get(path) === line && !isNamed([path]))
        expect(lines.get(path), `${path} is not restored as it was all the time`).toBe(line);
  } else if (tokens.size < tokensOf(lab).size) {
    // It is still moving, so only that something is named can be checked.
    expect(flaws.length, `tokens are lost: only ${[...tokens.keys()]} were saved`).toBeGreaterThan(0);
  }
  removeTree(directory);
}

const wasOutside = ({ log }: Race) => log.some((line) => line.includes("of the cell"));

/** Without changes, a checkpoint has no flaws and is exact. */
async function checkQuiet(race: Race, dirty?: DirtySet): Promise<void> {
  const { lab } = race;
  const { ref, flaws } = await lab.checkpoint({ git: false, dirty });
  expect(flaws).toEqual([]);
  const directory = await lab.restored(ref.id);
  if (canCompare) expect(listTree(directory)).toEqual(listCell(lab));
  expect(findTokens(directory)).toEqual(tokensOf(lab));
  checkOutside(race, directory);
  await lab.verify();
}

/** Nothing was written through a link, and nothing behind one is in `restored`. */
function checkOutside({ tree }: Race, restored?: string): void {
  const contents = pathsBelow(tree.outside).map(
    ({ path }) => `${basename(path)}: ${fs.readFileSync(path, "utf8")}`,
  );
  expect(contents).toEqual(
    ["secret", "static", "token-0", "v0"].map((name) => `${name}: ${OUTSIDE_CONTENT}`),
  );
  if (restored === undefined) return;
  for (const { path, type } of pathsBelow(restored))
    if (type === "file")
      expect(fs.readFileSync(path, "utf8"), relative(restored, path)).not.toBe(OUTSIDE_CONTENT);
}

function contentsBelow(directory: string): string[] {
  const files = pathsBelow(directory).filter(({ type }) => type === "file");
  return files.map(({ path }) => fs.readFileSync(path, "utf8"));
}

/** What a restore sets aside stays in the cell. */
function ordinary(lines: readonly string[]): string[] {
  return lines.filter((line) => !/"path": "(?:[^"]*\/)?\.lazarus-/.test(line));
}
