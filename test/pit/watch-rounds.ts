// Random trees of changes under the real watcher. After each part, everything that the independent lister sees as changed must be
// in the set that was taken, or the set must be unknown. Some sets are taken while the changes continue.
import fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { TakenPaths } from "../../src/pit/watch/tree-watcher.ts";
import { createRandom, type Random } from "../../src/testing/index.ts";
import { createWatchedTree, findUnreported } from "./watched-tree.ts";

const NAMES = ["a", "b", "c", "d", "e", "f g", "ü", Buffer.of(0x78, 0xff).toString("latin1")];

export interface Place {
  readonly random: Random;
  readonly root: string;
  readonly outside: string;
  /** Inodes that had two names at some time. */
  readonly linked: Set<number>;
  next(): string;
}

type Mutation = (place: Place) => void;

/** Directories below a root, itself included, as they are now. */
function directoriesIn(root: string): string[] {
  const found = [root];
  for (let index = 0; index < found.length; index += 1)
    for (const entry of fs.readdirSync(found[index]!, { withFileTypes: true }))
      if (entry.isDirectory()) found.push(join(found[index]!, entry.name));
  return found;
}

const somewhere = ({ random, root }: Place) => random.pick(directoriesIn(root));
const somePath = (place: Place) => join(somewhere(place), place.random.pick(NAMES));
const someFile = (place: Place) => {
  const files = directoriesIn(place.root).flatMap((directory) =>
    fs
      .readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => join(directory, name)),
  );
  return files.length === 0 ? somePath(place) : place.random.pick(files);
};
const someBranch = (place: Place) => {
  const below = directoriesIn(place.root).slice(1);
  return below.length === 0 ? somePath(place) : place.random.pick(below);
};

/** Many fail, because a name is taken or missing: that is expected. */
const MUTATIONS: readonly Mutation[] = [
  (place) => fs.writeFileSync(somePath(place), place.next()),
  (place) => fs.writeFileSync(somePath(place), place.next()),
  (place) => fs.appendFileSync(someFile(place), place.next()),
  (place) => fs.truncateSync(someFile(place), 1),
  (place) => fs.chmodSync(someFile(place), place.random.int(0o600, 0o777)),
  (place) => fs.utimesSync(someFile(place), place.random.int(1, 1e9), place.random.int(1, 1e9)),
  (place) => fs.rmSync(someFile(place)),
  (place) => fs.mkdirSync(somePath(place)),
  (place) => fs.mkdirSync(join(somePath(place), "x/y/z"), { recursive: true }),
  (place) => fs.renameSync(someFile(place), somePath(place)),
  (place) => fs.renameSync(someBranch(place), somePath(place)),
  (place) => fs.renameSync(someBranch(place), someBranch(place)),
  (place) => fs.renameSync(someBranch(place), join(place.outside, place.random.pick(NAMES))),
  (place) => fs.renameSync(join(place.outside, place.random.pick(NAMES)), somePath(place)),
  (place) => fs.rmSync(someBranch(place), { recursive: true }),
  (place) => fs.chmodSync(someBranch(place), place.random.int(0o700, 0o777)),
  (place) => fs.symlinkSync("target", somePath(place)),
  (place) => {
    const file = someFile(place);
    place.linked.add(fs.statSync(file).ino);
    fs.linkSync(file, somePath(place));
  },
  // A directory that is deleted and immediately recreated.
  (place) => {
    const branch = someBranch(place);
    fs.rmSync(branch, { recursive: true });
    fs.mkdirSync(join(branch, "again"), { recursive: true });
    fs.writeFileSync(join(branch, "again/file"), place.next());
  },
  // Two directories that change places.
  (place) => {
    const [one, two] = [someBranch(place), someBranch(place)];
    const parked = join(place.outside, `parked-${place.next()}`);
    fs.renameSync(one, parked);
    fs.renameSync(two, one);
    fs.renameSync(parked, two);
  },
  // Another directory changes outside after it was moved there, and comes back.
  (place) => {
    const branch = someBranch(place);
    const away = join(place.outside, `away-${place.next()}`);
    fs.renameSync(branch, away);
    fs.writeFileSync(join(away, "outside"), place.next());
    fs.renameSync(away, branch);
  },
  // A burst in one directory.
  (place) => {
    const directory = somewhere(place);
    for (let index = 0; index < 300; index += 1)
      fs.writeFileSync(join(directory, `burst-${index % 20}`), "x");
  },
];

/** Random changes; `between` is called now and then. */
export async function mutateTree(place: Place, changes: number, between: () => void): Promise<void> {
  for (let change = 0; change < changes; change += 1) {
    if (place.random.chance(0.1)) between();
    // The watcher's thread reads events in the meantime.
    if (place.random.chance(0.1))
      await new Promise((resolve) => setTimeout(resolve, place.random.int(0, 120)));
    try {
      place.random.pick(MUTATIONS)(place);
    } catch {
      // Not possible in this tree.
    }
  }
}

export function fillTree(root: string): void {
  for (const path of ["a/b/c", "d", "e/f"]) fs.mkdirSync(join(root, path), { recursive: true });
  for (const path of ["a/one", "a/b/two", "d/three"]) fs.writeFileSync(join(root, path), path);
}

export function createPlace(random: Random, where: Pick<Place, "root" | "outside">): Place {
  let count = 0;
  return {
    ...where,
    random,
    linked: new Set(),
    next() {
      count += 1;
      return `${count}`;
    },
  };
}

/** Whether a path, as list_tree.py writes it, is a file that had two names at some time. */
export function wasLinked({ linked, root }: Place, path: string): boolean {
  return linked.has(fs.lstatSync(onDisk(root, path), { throwIfNoEntry: false })?.ino ?? 0);
}

export async function watchRound(seed: number): Promise<void> {
  const random = createRandom(seed);
  await using lab = await createWatchedTree([], fillTree);
  const place = createPlace(random, lab);
  let before = lab.list();
  for (let part = 0; part < 3; part += 1) {
    const sets: Promise<TakenPaths>[] = [];
    await mutateTree(place, random.int(1, 60), () => void sets.push(lab.take()));
    sets.push(lab.take());
    const taken = await Promise.all(sets);
    const after = lab.list();
    // A write through a name that is gone again is reported for that name only: the audit finds it.
    const unreported = findUnreported(before, after, taken).filter((path) => !wasLinked(place, path));
    expect(unreported, `seed ${seed}, part ${part}`).toEqual([]);
    before = after;
  }
}

/** Undoes the escapes of list_tree.py. */
function onDisk(root: string, path: string): Buffer {
  const bytes = path.replace(/%(..)/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(bytes, "latin1")]);
}
