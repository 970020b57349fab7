import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemMachine } from "../../platform/machine.ts";
import { NOTHING_STORED } from "../pack/layers.ts";
import { runTask } from "../pack/task.ts";
import { createMatcher } from "../path-patterns.ts";
import type { ChangedRows } from "./changed-rows.ts";
import type { Survey, Walk } from "./found.ts";
import { nextRows } from "./next-rows.ts";
import { NO_ROWS, pathsBelow, type StatRows } from "./stat-rows.ts";
import { openStatStore, type StatStore, saveRows } from "./stat-store.ts";
import { createWalker } from "./walk.ts";

let root: string;
const opened: StatStore[] = [];
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "lazarus-walk-"));
});
afterEach(() => {
  for (const store of opened.splice(0)) store[Symbol.dispose]();
  fs.rmSync(root, { recursive: true });
  fs.rmSync(`${root}.store`, { recursive: true, force: true });
});

const at = (name: string) => join(root, name);
/** Whether rows are written to a store and read back. */
let isStored = false;
const walk = (rows: StatRows = NO_ROWS, exclude: string[] = [], defer?: string) =>
  createWalker({ root, rows, isExcluded: createMatcher(exclude), rules: JSON.stringify(exclude), defer });
const look = (rows: StatRows, ...paths: string[]) =>
  walk(rows).look({ paths: new Set(paths), trees: new Set() });
const changed = ({ found }: Walk) =>
  [...found.values()]
    .filter(({ unchanged }) => !unchanged)
    .map(({ path }) => path)
    .sort();
const gone = (seen: Walk) => [...seen.gone.keys()].sort();

function survey(rows: StatRows, seen: Walk, given: Partial<Survey> = {}): Survey {
  return {
    rows,
    walk: seen,
    rules: "[]",
    scanStartMs: Number.POSITIVE_INFINITY,
    namesSinceMs: Number.POSITIVE_INFINITY,
    mapped: new Set(),
    mappedSinceMs: Number.POSITIVE_INFINITY,
    isPartial: false,
    changed: [],
    refreshed: new Map(),
    removed: [],
    removedDirectories: new Set(),
    flaws: [],
    sources: new Map(),
    ...given,
  };
}

function stored(rows: ChangedRows): StatRows {
  if (!isStored) return rows;
  const file = join(`${root}.store`, "stat-store.db");
  saveRows(systemMachine, file, rows, ["m"]);
  const store = openStatStore(systemMachine, file, ["m"])!;
  opened.push(store);
  return store;
}

/** The rows of a checkpoint that captured everything the walk found, with these exceptions. */
function remember(seen: Walk, { missed = [] as string[], exclude = [] as string[] } = {}): StatRows {
  const items = [...seen.found.values()]
    .map(({ path, type, size }) => ({ path, type, size }))
    .filter(({ path }) => !missed.includes(path));
  const { captured } = runTask({ kind: "hash", codec: "gzip", root, items });
  const taken = new Map(captured.map((item) => [item.entry.path, item]));
  const made = survey(NO_ROWS, seen, { rules: JSON.stringify(exclude) });
  return stored(nextRows(made, { ...NOTHING_STORED, captured: taken }));
}

describe.each([false, true])("a walk over rows (stored: %s)", (given) => {
  beforeEach(() => {
    isStored = given;
  });

  it("finds changed paths, and removed ones with everything below", () => {
    fs.mkdirSync(at("d/e"), { recursive: true });
    for (const name of ["a", "d/b", "d/e/c"]) fs.writeFileSync(at(name), name);
    const rows = remember(walk().walk());
    expect(changed(walk(rows).walk())).toEqual([]);
    fs.writeFileSync(at("d/b"), "B");
    fs.rmSync(at("d/e"), { recursive: true });
    fs.writeFileSync(at("new"), "n");
    const second = walk(rows).walk();
    expect(changed(second)).toEqual([".", "d", "d/b", "new"]);
    expect([...second.gone]).toEqual([
      ["d/e", true],
      ["d/e/c", false],
    ]);
  });

  it("reads a directory again if some of its names have no row", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/kept"), "x");
    fs.writeFileSync(at("d/missed"), "x");
    const rows = remember(walk().walk(), { missed: ["d/missed"] });
    const second = walk(rows).walk();
    expect(changed(second)).toEqual(["d/missed"]);
    expect([...second.read.keys()]).toEqual(["d"]);
  });

  it("reads a directory again if a pattern excluded something in it", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/hidden"), "x");
    const rows = remember(walk(NO_ROWS, ["hidden"]).walk(), { exclude: ["hidden"] });
    expect(changed(walk(rows, ["hidden"]).walk())).toEqual([]);
    expect(changed(walk(rows).walk())).toEqual(["d/hidden"]);
  });

  it("drops rows that a new pattern excludes", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/hidden"), "x");
    const rows = remember(walk().walk());
    expect(gone(walk(rows, ["hidden"]).walk())).toEqual(["d/hidden"]);
  });

  it("drops everything below a directory that could not be captured", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/f"), "x");
    const rows = remember(walk().walk(), { missed: ["d"] });
    expect(pathsBelow(rows, ".")).toEqual([]);
    expect(rows.totals).toMatchObject({ files: 0, directories: 1 });
    expect(changed(walk(rows).walk())).toEqual(["d", "d/f"]);
  });

  it("drops unchanged paths that were removed from the checkpoint", () => {
    fs.writeFileSync(at("a.db-wal"), "x");
    const first = remember(walk().walk());
    const seen = walk(first).walk();
    expect(changed(seen)).toEqual([]);
    const second = nextRows(survey(first, seen, { removed: ["a.db-wal"] }), NOTHING_STORED);
    expect(changed(walk(second).walk())).toEqual(["a.db-wal"]);
  });

  it("distinguishes hard links from separate files", () => {
    fs.writeFileSync(at("a"), "x");
    fs.linkSync(at("a"), at("b"));
    fs.writeFileSync(at("c"), "x");
    const { found } = walk().walk();
    expect(found.get("a")!.inode).toBe(found.get("b")!.inode);
    expect(found.get("a")!.inode).toMatch(/^\d+:\d+$/);
    expect(found.get("c")!.inode).toBe(undefined);
  });

  it("does not trust the stat of a mapped file", () => {
    fs.writeFileSync(at("a"), "x");
    const rows = remember(walk().walk());
    const mapped = new Set([fs.statSync(at("a")).ino]);
    const walker = createWalker({ root, rows, isExcluded: () => false, rules: "[]", mapped });
    expect(changed(walker.walk())).toEqual(["a"]);
  });
});

describe.each([false, true])("a look at dirty paths (stored: %s)", (given) => {
  beforeEach(() => {
    isStored = given;
    fs.mkdirSync(at("d/e"), { recursive: true });
    for (const name of ["a", "d/b", "d/e/c"]) fs.writeFileSync(at(name), name);
  });

  it("examines no other paths", () => {
    const rows = remember(walk().walk());
    for (const name of ["a", "d/b"]) fs.writeFileSync(at(name), "other");
    expect(changed(look(rows, "d/b"))).toEqual(["d/b"]);
    expect(changed(look(rows))).toEqual([]);
  });

  it("examines the directory of a name that appeared or disappeared", () => {
    const rows = remember(walk().walk());
    fs.rmSync(at("d/e/c"));
    fs.mkdirSync(at("n/m"), { recursive: true });
    fs.writeFileSync(at("n/m/f"), "x");
    const seen = look(rows, "d/e/c", "n/m/f");
    expect(changed(seen)).toEqual([".", "d/e", "n", "n/m", "n/m/f"]);
    expect(gone(seen)).toEqual(["d/e/c"]);
  });

  it("drops a removed directory with everything below it, in any order of the set", () => {
    const rows = remember(walk().walk());
    fs.rmSync(at("d"), { recursive: true });
    for (const dirty of [["d"], ["d/e/c", "d"], ["d/e/c"]])
      expect(gone(look(rows, ...dirty)), dirty.join()).toEqual(
        dirty.includes("d") ? ["d", "d/b", "d/e", "d/e/c"] : expect.arrayContaining(["d/e/c", "d/e", "d"]),
      );
  });

  it("walks a directory that replaced another one", () => {
    const rows = remember(walk().walk());
    fs.renameSync(at("d"), at("old"));
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/b"), "other");
    const seen = look(rows, "d", "old");
    expect(changed(seen)).toEqual([".", "d", "d/b", "old", "old/b", "old/e", "old/e/c"]);
    expect(gone(seen)).toEqual(["d/e", "d/e/c"]);
  });

  it("does not look through a link that replaced a directory", () => {
    const rows = remember(walk().walk());
    fs.renameSync(at("d"), at("old"));
    fs.symlinkSync("old", at("d"));
    const seen = look(rows, "d/b");
    expect(gone(seen)).toEqual(expect.arrayContaining(["d/b", "d"]));
    expect(seen.found.get("d")).toMatchObject({ type: "symlink" });
  });

  it("examines every name of a file, and a database together with its sidecars", () => {
    fs.linkSync(at("a"), at("d/link"));
    fs.writeFileSync(at("x.db"), Buffer.alloc(512));
    fs.writeFileSync(at("x.db-wal"), "w");
    const rows = remember(walk().walk());
    fs.appendFileSync(at("a"), "more");
    expect(changed(look(rows, "a"))).toEqual(["a", "d/link"]);
    expect([...look(rows, "x.db").found.keys()]).toEqual(["x.db-wal"]);
    fs.rmSync(at("a"));
    expect(changed(look(rows, "a"))).toEqual([".", "d/link"]);
  });

  it("walks all of a dirty tree", () => {
    const rows = remember(walk().walk());
    fs.appendFileSync(at("d/e/c"), "more");
    fs.appendFileSync(at("a"), "more");
    const seen = walk(rows).look({ paths: new Set(["d/e/c"]), trees: new Set(["d"]) });
    expect(changed(seen)).toEqual(["d/e/c"]);
  });
});

describe("a deferred directory", () => {
  it("is walked by resume, in its state at that time", () => {
    fs.mkdirSync(at(".git"));
    fs.writeFileSync(at(".git/old"), "x");
    const walker = walk(NO_ROWS, [], ".git");
    expect(changed(walker.walk())).toEqual([".", ".git"]);
    fs.writeFileSync(at(".git/new"), "x");
    expect(changed(walker.resume([]))).toEqual([".", ".git", ".git/new", ".git/old"]);
  });

  it("may be gone when it is resumed", () => {
    fs.mkdirSync(at(".git/objects"), { recursive: true });
    const rows = remember(walk().walk());
    const walker = walk(rows, [], ".git");
    walker.walk();
    fs.rmSync(at(".git"), { recursive: true });
    const seen = walker.resume([]);
    expect(gone(seen)).toEqual([".git", ".git/objects"]);
    expect(seen.found.get(".git")).toMatchObject({ unchanged: false, row: undefined });
  });

  it("is looked at by resume, together with what git wrote", () => {
    fs.mkdirSync(at(".git"));
    for (const name of [".git/index", "a"]) fs.writeFileSync(at(name), "x");
    const rows = remember(walk().walk());
    const walker = walk(rows, [], ".git");
    fs.appendFileSync(at("a"), "more");
    fs.appendFileSync(at(".git/index"), "more");
    expect(changed(walker.look({ paths: new Set(["a", ".git/index"]), trees: new Set() }))).toEqual(["a"]);
    fs.writeFileSync(at(".git/ref"), "x");
    expect(changed(walker.resume([".git"]))).toEqual([".git", ".git/index", ".git/ref", "a"]);
  });
});
