// Plans are checked against a model of a file system: applied to the current tree, a plan must produce the target plus the
// kept paths, for any two trees.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Entry, EntryType, Listing } from "../model/entry.ts";
import { parentPath } from "../model/path-bytes.ts";
import { createMatcher } from "../path-patterns.ts";
import { isEmptyPlan, planRestore, type RestorePlan } from "./plan.ts";
import { ancestors, createScope } from "./scope.ts";

const OWNERS = { owners: true };

function entry(path: string, type: EntryType, extra: Partial<Entry> = {}): Entry {
  const file = type === "file";
  const base = { path, type, mode: 0o644, uid: 1, gid: 1, mtimeSec: 100, mtimeNs: 5, size: file ? 1 : 0 };
  return { ...base, sha256: file ? "aa" : "", ...(type === "symlink" ? { target: "t" } : {}), ...extra };
}

function listing(...entries: Entry[]): Map<string, Entry> {
  return new Map([entry(".", "directory"), ...entries].map((each) => [each.path, each]));
}

describe("planRestore", () => {
  it("does nothing where nothing differs", () => {
    const tree = listing(entry("d", "directory"), entry("d/f", "file"), entry("l", "symlink"));
    const plan = planRestore(tree, tree, OWNERS);
    expect(isEmptyPlan(plan)).toBe(true);
    expect([plan.clear, plan.directories, plan.place, plan.adjust, plan.remove]).toEqual([
      [],
      [],
      [],
      [],
      [],
    ]);
  });

  it("summarizes the changes for the user", () => {
    const now = listing(
      entry("content", "file", { sha256: "bb" }),
      entry("mode", "file", { mode: 0o755 }),
      entry("new", "directory"),
      entry("new/file", "file"),
      entry("same", "file"),
    );
    const target = listing(
      entry("content", "file"),
      entry("gone", "file"),
      entry("mode", "file"),
      entry("same", "file"),
    );
    const { changes, place, adjust, remove } = planRestore(now, target, OWNERS);
    expect(changes).toEqual({
      added: ["gone"],
      changed: ["content"],
      metadata: ["mode"],
      removed: ["new", "new/file"],
      kept: [],
    });
    expect(place.map((step) => step.entry.path).sort()).toEqual(["content", "gone"]);
    expect(adjust.map((step) => step.entry.path)).toEqual(["mode"]);
    expect(remove.map((step) => step.path)).toEqual(["new/file", "new"]);
  });

  it("ignores owners when it may not set them", () => {
    const now = listing(entry("f", "file", { uid: 7 }));
    expect(isEmptyPlan(planRestore(now, listing(entry("f", "file")), { owners: false }))).toBe(true);
    expect(planRestore(now, listing(entry("f", "file")), OWNERS).changes.metadata).toEqual(["f"]);
  });

  it("restores hard links, and separates files that are not linked in the checkpoint", () => {
    const linked = listing(entry("a", "file", { group: "g" }), entry("b", "file", { group: "g" }));
    const apart = listing(entry("a", "file"), entry("b", "file"));
    const join = planRestore(apart, linked, OWNERS);
    expect(join.place.map((step) => [step.entry.path, step.inode])).toEqual([
      ["a", 0],
      ["b", 0],
    ]);
    const split = planRestore(linked, apart, OWNERS);
    expect(new Set(split.place.map((step) => step.inode)).size).toBe(split.place.length);
    expect(split.place.length).toBeGreaterThan(0);
    expect(isEmptyPlan(planRestore(linked, linked, OWNERS))).toBe(true);
  });

  it("does not change a hard-linked file through a selected name only", () => {
    const now = listing(
      entry("a", "file", { group: "g", mode: 0o600 }),
      entry("b", "file", { group: "g", mode: 0o600 }),
    );
    const target = listing(entry("a", "file", { group: "g" }), entry("b", "file", { group: "g" }));
    const plan = planRestore(now, target, { owners: true, scope: createScope(["a"], "/cell") });
    expect(plan.adjust).toEqual([]);
    expect(plan.place.map((step) => step.entry.path)).toEqual(["a"]);
  });

  it("keeps paths excluded from the checkpoint, and their parent directories", () => {
    const now = listing(
      entry("d", "directory"),
      entry("d/x.log", "file"),
      entry("d/y", "file"),
      entry("cache", "directory"),
      entry("cache/1", "file"),
    );
    const plan = planRestore(now, listing(), {
      owners: true,
      wasExcluded: createMatcher(["*.log", "cache"]),
    });
    expect(plan.changes.removed).toEqual(["d/y"]);
    expect(plan.changes.kept.map(({ path }) => path)).toEqual(["cache", "d", "d/x.log"]);
  });

  it("keeps paths that the checkpoint could not save, and everything in a directory that it could not read", () => {
    const now = listing(
      entry("dark", "directory"),
      entry("dark/deep", "directory"),
      entry("dark/deep/x", "file"),
      entry("lost", "directory"),
      entry("lost/file", "file"),
      entry("new", "file"),
    );
    const plan = planRestore(now, listing(entry("dark", "directory")), {
      owners: true,
      wasSkipped: new Set(["dark", "lost/file"]),
    });
    expect(plan.changes.removed).toEqual(["new"]);
    expect(plan.remove.map(({ path }) => path)).toEqual(["new"]);
    expect(plan.changes.kept.map(({ path }) => path)).toEqual(["dark/deep", "lost", "lost/file"]);
  });

  it("does not touch excluded paths, even when the checkpoint has them", () => {
    const target = listing(entry("cache", "directory"), entry("cache/1", "file", { sha256: "bb" }));
    const plan = planRestore(listing(), target, { owners: true, isExcluded: createMatcher(["cache"]) });
    expect(isEmptyPlan(plan)).toBe(true);
    expect(plan.changes.kept.map(({ path }) => path)).toEqual(["cache"]);
  });

  it("empties a directory before a file replaces it", () => {
    const now = listing(
      entry("p", "directory"),
      entry("p/q", "directory"),
      entry("p/q/r", "file"),
      entry("s", "file"),
    );
    const plan = planRestore(now, listing(entry("p", "file")), OWNERS);
    expect(plan.clear.map(({ path }) => path)).toEqual(["p/q/r", "p/q", "p"]);
    expect(plan.remove.map(({ path }) => path)).toEqual(["s"]);
    expect(plan.changes.changed).toEqual(["p"]);
  });

  it("creates missing parents of a selected path and touches nothing else", () => {
    const target = listing(
      entry("a", "directory"),
      entry("a/b", "file"),
      entry("a/c", "file"),
      entry("z", "file"),
    );
    const plan = planRestore(listing(), target, { owners: true, scope: createScope(["a/b"], "/cell") });
    expect(plan.changes.added).toEqual(["a", "a/b"]);
    expect(plan.directories.map((step) => [step.entry.path, step.set])).toEqual([
      [".", false],
      ["a", false],
    ]);
  });
});

const NAMES = ["a", "b", "c", "x.log", "cache"];
const PATTERNS = ["*.log", "cache", "a/b", "c"];

/** A tree as a list of draws; a path whose parent is not a directory is dropped, a later draw of a path wins. */
const draw = fc.record({
  path: fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((names) => names.join("/")),
  type: fc.constantFrom<EntryType>("file", "file", "directory", "directory", "symlink", "fifo"),
  sha256: fc.constantFrom("aa", "bb"),
  mode: fc.constantFrom(0o644, 0o600),
  mtimeNs: fc.constantFrom(1, 2),
  group: fc.constantFrom(undefined, undefined, "g", "h"),
});

const tree = fc.array(draw, { maxLength: 14 }).map((draws): Map<string, Entry> => {
  const found = listing();
  for (const each of [...draws].sort((a, b) => a.path.length - b.path.length)) {
    if (found.get(parentPath(each.path))?.type !== "directory") continue;
    if ([...found.keys()].some((path) => path.startsWith(`${each.path}/`))) continue;
    const { path, type, mode, mtimeNs, sha256, group } = each;
    const leader =
      group && type === "file" ? [...found.values()].find((other) => other.group === group) : undefined;
    if (type === "file" && leader !== undefined) found.set(path, { ...leader, path });
    else if (type === "file")
      found.set(path, entry(path, type, { mode, mtimeNs, sha256, ...(group ? { group } : {}) }));
    else
      found.set(
        path,
        entry(path, type, { mtimeNs, ...(type === "symlink" ? { target: sha256 } : { mode }) }),
      );
  }
  return found;
});

const covered = (patterns: readonly string[]) => {
  const matches = createMatcher(patterns);
  return (path: string) => [path, ...ancestors(path)].some((each) => each !== "." && matches(each));
};

function without(tree: Listing, isCovered: (path: string) => boolean): Map<string, Entry> {
  return new Map([...tree].filter(([path]) => !isCovered(path)));
}

interface Inode {
  attributes: Omit<Entry, "path" | "group">;
  /** A directory whose names changed since its time was set. */
  dirty: boolean;
}

/** Names and inodes, and the few calls that a plan is made of. */
class Model {
  readonly names = new Map<string, Inode>();

  constructor(tree: Listing) {
    const groups = new Map<string, Inode>();
    for (const each of tree.values()) {
      const { path, group, ...attributes } = each;
      const inode = groups.get(group ?? "") ?? { attributes, dirty: false };
      if (group !== undefined) groups.set(group, inode);
      this.names.set(path, inode);
    }
  }

  type(path: string): EntryType | undefined {
    return this.names.get(path)?.attributes.type;
  }

  isEmpty(path: string): boolean {
    return ![...this.names.keys()].some((name) => name.startsWith(`${path}/`));
  }

  set(path: string, inode: Inode): void {
    expect(this.type(parentPath(path)), `parent of ${path}`).toBe("directory");
    this.names.set(path, inode);
    this.names.get(parentPath(path))!.dirty = true;
  }

  delete(path: string): boolean {
    if (!this.names.has(path) || !this.isEmpty(path)) return false;
    this.names.delete(path);
    this.names.get(parentPath(path))!.dirty = true;
    return true;
  }

  apply(plan: RestorePlan): void {
    for (const { path } of plan.clear) this.delete(path);
    for (const step of plan.directories) {
      const { path } = step.entry;
      if (this.type(path) === "directory") continue;
      this.delete(path);
      this.set(path, { attributes: attributesOf(step.entry), dirty: false });
    }
    const made = new Map<number, Inode>();
    for (const { entry: each, inode } of plan.place) {
      if (this.type(each.path) === "directory" && !this.delete(each.path)) continue;
      if (!made.has(inode)) made.set(inode, { attributes: attributesOf(each), dirty: false });
      this.set(each.path, made.get(inode)!);
    }
    for (const step of plan.adjust) this.names.get(step.entry.path)!.attributes = attributesOf(step.entry);
    for (const { path } of plan.remove) this.delete(path);
    for (const step of [...plan.directories].reverse()) {
      if (!step.set) continue;
      const inode = this.names.get(step.entry.path)!;
      inode.attributes = attributesOf(step.entry);
      inode.dirty = false;
    }
  }
}

function attributesOf({ path: _, group: __, ...attributes }: Entry): Inode["attributes"] {
  return attributes;
}

/** Names of one inode among `paths`, as a set of sets. */
function topology(model: Model, paths: readonly string[]): string[] {
  const byInode = new Map<Inode, string[]>();
  for (const path of paths) {
    const inode = model.names.get(path)!;
    byInode.set(inode, [...(byInode.get(inode) ?? []), path]);
  }
  return [...byInode.values()].map((names) => names.sort().join(" ")).sort();
}

describe("planRestore, for any two trees", () => {
  const patterns = fc.subarray(PATTERNS, { maxLength: 2 });
  const named = fc.option(fc.array(fc.constantFrom("a", "a/b", "b/c", "c/a/b", "cache"), { minLength: 1 }), {
    nil: [],
  });

  it("turns the current tree into the target plus the kept paths", () => {
    fc.assert(
      fc.property(tree, tree, patterns, patterns, named, (disk, whole, past, present, paths) => {
        const wasExcluded = covered(past);
        const isExcluded = covered(present);
        const now = without(disk, isExcluded);
        const target = without(whole, wasExcluded);
        const scope = createScope(paths, "/cell");
        const options = {
          owners: true,
          scope,
          wasExcluded: createMatcher(past),
          isExcluded: createMatcher(present),
        };
        const plan = planRestore(now, target, options);
        const model = new Model(disk);
        const before = new Model(disk);
        model.apply(plan);

        const holds = (path: string) =>
          [...disk.keys()].some((each) => each.startsWith(`${path}/`) && isExcluded(each));
        const isKept = (path: string) => plan.changes.kept.some((each) => each.path === path);
        const planned = [...target.keys()].filter(
          (path) =>
            scope.has(path) &&
            !isExcluded(path) &&
            ![path, ...ancestors(path)].some(
              (each) =>
                target.get(each)?.type !== "directory" &&
                (isKept(each) || (disk.get(each)?.type === "directory" && holds(each))),
            ),
        );
        for (const path of planned) {
          expect(model.names.get(path)?.attributes, path).toEqual(attributesOf(target.get(path)!));
          expect(model.names.get(path)!.dirty, `${path} has the checkpoint's time`).toBe(false);
        }
        const files = planned.filter((path) => target.get(path)!.type === "file");
        expect(topology(model, files)).toEqual(topology(new Model(target), files));

        for (const [path, inode] of before.names) {
          const untouchable =
            isExcluded(path) || (wasExcluded(path) && !target.has(path)) || !scope.has(path);
          const needed = planned.some((each) => ancestors(each).includes(path));
          if (untouchable && !needed)
            expect(model.names.get(path)?.attributes, `${path} is left alone`).toEqual(inode.attributes);
          else if (scope.has(path) && !target.has(path) && !isKept(path) && !holds(path))
            expect(model.names.has(path), `${path} is removed`).toBe(false);
        }
        for (const path of model.names.keys()) {
          const known =
            disk.has(path) ||
            (target.has(path) && (scope.has(path) || planned.some((each) => ancestors(each).includes(path))));
          expect(known, `${path} is unexpected`).toBe(true);
        }
        // Applying the plan again changes nothing: an interrupted restore can be rolled forward.
        const once = new Map([...model.names].map(([path, inode]) => [path, inode.attributes]));
        model.apply(plan);
        expect(new Map([...model.names].map(([path, inode]) => [path, inode.attributes]))).toEqual(once);
      }),
      { numRuns: 3000 },
    );
  });

  it("lists each path once, and plans no path twice", () => {
    fc.assert(
      fc.property(tree, tree, (now, target) => {
        const { changes, place, remove, clear } = planRestore(now, target, OWNERS);
        const listed = [...changes.added, ...changes.changed, ...changes.metadata, ...changes.removed];
        expect(new Set(listed).size).toBe(listed.length);
        const removed = [...remove, ...clear].map(({ path }) => path);
        expect(new Set(removed).size).toBe(removed.length);
        expect(new Set(place.map((step) => step.entry.path)).size).toBe(place.length);
      }),
    );
  });
});
