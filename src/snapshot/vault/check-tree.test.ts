import { describe, expect, it } from "vitest";
import { createTree, EMPTY_SHA256, EMPTY_TREE, findFaults, mergeTables, scanTree } from "./check-tree.ts";
import type { Toc } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";

const LENGTH = 100;

function entry(path: string, given: Partial<TocEntry> = {}): TocEntry {
  const base = { mode: 0o644, uid: 0, gid: 0, mtimeSec: 0, mtimeNs: 0, size: 0 };
  const type = given.type ?? "file";
  return { ...base, path, sha256: type === "file" ? EMPTY_SHA256 : "", ...given, type };
}

const directory = (path: string) => entry(path, { type: "directory" });
const link = (path: string) => entry(path, { type: "symlink", target: "elsewhere" });

function table(entries: readonly TocEntry[], removed: readonly string[] = []): Toc {
  return { members: [{ stored: 10, raw: LENGTH, entries: entries.length }], entries, removed };
}

const good = table([directory("."), directory("d"), directory("d/e"), entry("d/e/f"), entry("g")]);

/** The faults of a layer on top of `good`: checked on its own, and together with what is below it. */
function faultsOf(upper: Toc): Map<string, string>[] {
  const below = createTree();
  below.apply(good);
  return [findFaults(below, [upper]), findFaults(EMPTY_TREE, [good, upper])].map(
    (faults) => new Map(faults.map(({ path, problem }) => [path, problem])),
  );
}

describe("a tree", () => {
  it.each<[string, Toc]>([
    ["nothing", table([])],
    ["new entries in known and new directories", table([entry("d/new"), directory("n"), entry("n/x")])],
    ["a removed directory with everything below it", table([], ["d", "d/e", "d/e/f"])],
    ["a directory that becomes a link", table([link("d")], ["d/e", "d/e/f"])],
    ["a file that becomes a directory", table([directory("g"), entry("g/x")])],
    [
      "a directory that is removed and set again",
      table([directory("d/e"), entry("d/e/f")], ["d/e", "d/e/f"]),
    ],
    ["a file at the end of its layer", table([entry("h", { sha256: "ab".repeat(32), at: 90, length: 10 })])],
  ])("with %s has no faults", (_, upper) => {
    for (const faults of faultsOf(upper)) expect([...faults]).toEqual([]);
  });

  it.each<[string, Toc, Record<string, string>]>([
    ["an entry without a directory", table([entry("n/x")]), { "n/x": "is below a missing directory" }],
    ["an entry below a file", table([entry("g/x")]), { "g/x": "is below a file" }],
    ["an entry below a new link", table([link("n"), entry("n/x")]), { "n/x": "is below a symlink" }],
    ["entries left below a link", table([link("d")]), { "d/e": "is below a symlink" }],
    [
      "entries left below a removed directory",
      table([], ["d/e"]),
      { "d/e/f": "is below a missing directory" },
    ],
    ["a root that is not a directory", table([link(".")]), { ".": "is below a symlink" }],
    ["a file without bytes", table([entry("h", { sha256: "ab".repeat(32) })]), { h: "has no content" }],
    ["a file without a digest", table([entry("h", { sha256: "" })]), { h: "has no digest" }],
    [
      "a file that ends outside its layer",
      table([entry("h", { sha256: "ab".repeat(32), at: 91, length: 10 })]),
      { h: "extends beyond the end of its layer" },
    ],
  ])("with %s has a fault that names it", (_, upper, expected) => {
    for (const faults of faultsOf(upper)) expect(Object.fromEntries(faults)).toEqual(expected);
    expect(isSound([good, upper])).toBe(false);
    expect(isSound([withoutRemovals(good, upper)])).toBe(false);
  });
});

describe("a quick scan of a whole tree", () => {
  it("accepts one with one entry per path, in one layer or two", () => {
    expect(isSound([good])).toBe(true);
    expect(isSound([good, table([entry("d/new"), directory("n"), entry("n/x")])])).toBe(true);
  });

  it.each<[string, Toc[], TocEntry[]]>([
    ["content other than what was packed", [good], [entry("g", { sha256: "cd".repeat(32) })]],
    ["a type other than what was packed", [good], [link("g")]],
    ["one entry fewer than was packed", [good], [entry("h")]],
    ["an entry twice", [good, table([entry("g")])], []],
    ["a removal", [good, table([], ["g"])], []],
  ])("does not accept %s", (_, tables, packed) => {
    expect(isSound(tables, packed)).toBe(false);
  });
});

/** Compares the tables with their own entries, some of which `packed` replaces. */
function isSound(tables: readonly Toc[], packed: readonly TocEntry[] = []): boolean {
  const entries = [...mergeTables(tables).values(), ...packed].filter((each) => each !== undefined);
  const scan = scanTree(new Map(entries.map((each) => [each.path, { entry: each }])));
  for (const { entries: rows, removed, members } of tables) {
    for (const row of rows) scan.entry(row);
    for (const path of removed) scan.removed(path);
    scan.endTable(members);
  }
  return scan.isSound();
}

/** The entries of both, in one layer. */
function withoutRemovals(lower: Toc, upper: Toc): Toc {
  return table([...mergeTables([lower, upper]).values()].filter((each) => each !== undefined));
}
