import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runTask } from "../pack/task.ts";
import { createMatcher } from "../path-patterns.ts";
import type { Survey, Walk } from "./found.ts";
import { nameAt } from "./name-table.ts";
import { buildCache, freshItems } from "./next-cache.ts";
import { decodeStatCache, encodeStatCache, type StatCache } from "./stat-cache.ts";
import { allFound } from "./unchanged-rows.ts";
import { createWalker } from "./walk.ts";

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "lazarus-walk-"));
});
afterEach(() => fs.rmSync(root, { recursive: true }));

const at = (name: string) => join(root, name);
/** Whether rows are probed first, so that unchanged paths are only marked. */
let isProbed = false;
const walk = (cache?: StatCache, exclude: string[] = [], defer: string[] = []) =>
  createWalker({
    root,
    cache: isProbed && cache !== undefined ? shared(cache) : cache,
    isExcluded: createMatcher(exclude),
    rules: JSON.stringify(exclude),
    defer: new Set(defer),
  });
const paths = (seen: Walk, cache?: StatCache) =>
  allFound(seen, cache)
    .map(({ path }) => path)
    .toArray()
    .sort();
const changed = ({ found }: Walk) =>
  found
    .filter(({ unchanged }) => !unchanged)
    .map(({ path }) => path)
    .sort();

/** The cache as if it was read from its file. */
function shared(cache: StatCache): StatCache {
  const bytes = encodeStatCache(cache);
  const memory = new SharedArrayBuffer(bytes.length);
  new Uint8Array(memory).set(bytes);
  return decodeStatCache(memory)!;
}

/** The cache of a checkpoint that captured everything the walk found, with these exceptions. */
function remember(
  seen: Walk,
  { removed = [] as string[], missed = [] as string[], exclude = [] as string[] } = {},
): StatCache {
  const items = seen.found
    .map(({ path, type, size }) => ({ path, type, size }))
    .filter(({ path }) => !missed.includes(path));
  const { captured } = runTask({ kind: "hash", codec: "gzip", root, items });
  const found: Survey = {
    cache: undefined,
    walk: seen,
    rules: JSON.stringify(exclude),
    scanStartMs: Number.POSITIVE_INFINITY,
    namesSinceMs: Number.POSITIVE_INFINITY,
    mapped: new Set(),
    changed: [],
    refreshed: new Map(),
    removed,
    removedDirectories: new Set(),
    flaws: [],
    sources: new Map(),
  };
  return buildCache(found, freshItems(found, new Map(captured.map((item) => [item.entry.path, item]))), "m");
}

describe.each([false, true])("a walk with a cache (probed: %s)", (probed) => {
  beforeEach(() => {
    isProbed = probed;
  });

  it("finds changed paths, and removed ones with everything below", () => {
    fs.mkdirSync(at("d/e"), { recursive: true });
    for (const name of ["a", "d/b", "d/e/c"]) fs.writeFileSync(at(name), name);
    const cache = remember(walk().walk());
    expect(changed(walk(cache).walk())).toEqual([]);
    fs.writeFileSync(at("d/b"), "B");
    fs.rmSync(at("d/e"), { recursive: true });
    fs.writeFileSync(at("new"), "n");
    const second = walk(cache).walk();
    expect(changed(second)).toEqual([".", "d", "d/b", "new"]);
    expect(second.gone.map((row) => nameAt(cache, row)).sort()).toEqual(["c", "e"]);
  });

  it("reads a directory again if some of its names have no row", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/kept"), "x");
    fs.writeFileSync(at("d/missed"), "x");
    const cache = remember(walk().walk(), { missed: ["d/missed"] });
    const second = walk(cache).walk();
    expect(changed(second)).toEqual(["d/missed"]);
    expect(second.found.find(({ path }) => path === "d")!.unchanged).toBe(true);
  });

  it("reads a directory again if a pattern excluded something in it", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/hidden"), "x");
    const cache = remember(walk(undefined, ["hidden"]).walk(), { exclude: ["hidden"] });
    expect(paths(walk(cache, ["hidden"]).walk(), cache)).toEqual([".", "d"]);
    expect(paths(walk(cache).walk(), cache)).toEqual([".", "d", "d/hidden"]);
  });

  it("forgets everything below a directory that could not be captured", () => {
    fs.mkdirSync(at("d"));
    fs.writeFileSync(at("d/f"), "x");
    const cache = remember(walk().walk(), { missed: ["d"] });
    expect([cache.count, nameAt(cache, 0)]).toEqual([1, "."]);
    expect(changed(walk(cache).walk())).toEqual(["d", "d/f"]);
  });

  it("forgets unchanged paths that were removed from the checkpoint", () => {
    fs.writeFileSync(at("a.db-wal"), "x");
    const first = remember(walk().walk());
    const seen = walk(first).walk();
    expect(changed(seen)).toEqual([]);
    const second = buildCache(
      {
        cache: first,
        walk: seen,
        rules: "[]",
        scanStartMs: 0,
        namesSinceMs: Number.POSITIVE_INFINITY,
        mapped: new Set(),
        changed: [],
        refreshed: new Map(),
        removed: ["a.db-wal"],
        removedDirectories: new Set(),
        flaws: [],
        sources: new Map(),
      },
      [],
      "m2",
    );
    expect(changed(walk(second).walk())).toEqual(["a.db-wal"]);
  });

  it("distinguishes hard links from separate files", () => {
    fs.writeFileSync(at("a"), "x");
    fs.linkSync(at("a"), at("b"));
    fs.writeFileSync(at("c"), "x");
    const inodes = new Map(
      walk()
        .walk()
        .found.map(({ path, inode }) => [path, inode]),
    );
    expect(inodes.get("a")).toBe(inodes.get("b"));
    expect(inodes.get("a")).toMatch(/^\d+:\d+$/);
    expect(inodes.get("c")).toBe(undefined);
  });
});

describe.each([false, true])("a deferred directory (probed: %s)", (probed) => {
  beforeEach(() => {
    isProbed = probed;
  });

  it("is walked by resume, in its state at that time", () => {
    fs.mkdirSync(at(".git"));
    fs.writeFileSync(at(".git/old"), "x");
    const walker = walk(undefined, [], [".git"]);
    expect(paths(walker.walk())).toEqual([".", ".git"]);
    fs.writeFileSync(at(".git/new"), "x");
    expect(paths(walker.resume(".git"))).toEqual([".", ".git", ".git/new", ".git/old"]);
  });

  it("may be gone when it is resumed", () => {
    fs.mkdirSync(at(".git/objects"), { recursive: true });
    const cache = remember(walk().walk());
    const walker = walk(cache, [], [".git"]);
    walker.walk();
    fs.rmSync(at(".git"), { recursive: true });
    const { gone, found } = walker.resume(".git");
    expect(gone.map((row) => nameAt(cache, row)).sort()).toEqual([".git", "objects"]);
    expect(found.find(({ path }) => path === ".git")).toMatchObject({ unchanged: false, row: -1 });
  });
});
