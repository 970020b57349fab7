import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import {
  IN_CREATE,
  IN_IGNORED,
  IN_ISDIR,
  IN_MODIFY,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_Q_OVERFLOW,
  IN_UNMOUNT,
} from "../../platform/libc/inotify.ts";
import { MAX_PATHS } from "./dirty-paths.ts";
import type { Mount } from "./mounts.ts";
import { type TreeWatches, type WatchedTree, watchTrees } from "./watch-trees.ts";

function createTree(...directories: string[]): string {
  const root = mkdtempSync(join(tmpdir(), "lazarus-watch-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const path of directories) mkdirSync(join(root, path), { recursive: true });
  return root;
}

/** A kernel that allows `limit` watches, which can be changed. */
function createKernel(limit = Number.POSITIVE_INFINITY) {
  const limits = { watches: limit };
  const wds = new Map<string, number>();
  const mounts: Mount[] = [{ path: "/", type: "ext4", key: "1" }];
  let last = 0;
  const inotify = {
    add(path: string | Buffer) {
      const known = wds.get(path.toString());
      if (known !== undefined) return known;
      if (wds.size >= limits.watches) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      last += 1;
      wds.set(path.toString(), last);
      return last;
    },
    remove(wd: number) {
      for (const [path, each] of wds) if (each === wd) wds.delete(path);
    },
    mounts: () => mounts,
    limit: () => String(limits.watches),
  };
  return { wds, mounts, limits, inotify };
}

const treeAt = (
  path: string,
  ignore: readonly string[] = [],
  quiet: readonly string[] = [],
): WatchedTree => ({
  roots: [{ path, prefix: "" }],
  ignore,
  quiet,
});
const event = (wd: number, mask: number, name = "") => ({ wd, mask, cookie: 0, name: Buffer.from(name) });
const EMPTY = { unknown: null, paths: [], trees: [] };

/** The set, in comparable order. */
function take(watches: TreeWatches, key: string) {
  const { unknown, paths, trees } = watches.take(key);
  return { unknown, paths: paths.toSorted(), trees: trees.toSorted() };
}

it("returns an unknown set at first, then the paths of the events", () => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  expect(watches.take("m1").unknown).toContain("before the watch began");
  expect(watches.take("m1")).toEqual(EMPTY);
  watches.handle(event(wds.get(join(root, "a"))!, IN_MODIFY, "old"));
  watches.handle(event(wds.get(join(root, "a"))!, IN_CREATE, "new"));
  watches.handle(event(wds.get(root)!, IN_MODIFY, "file"));
  const taken = take(watches, "m1");
  expect(taken).toEqual({ unknown: null, paths: ["a", "a/new", "a/old", "file"], trees: [] });
  expect(watches.take("m1")).toEqual(EMPTY);
  watches.putBack("m1", taken);
  watches.handle(event(wds.get(root)!, IN_MODIFY, "later"));
  expect(take(watches, "m1").paths).toEqual(["a", "a/new", "a/old", "file", "later"]);
});

it("reports a new directory as a whole, and its later changes one by one", () => {
  const root = createTree();
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  mkdirSync(join(root, "a/b"), { recursive: true });
  watches.handle(event(wds.get(root)!, IN_CREATE | IN_ISDIR, "a"));
  expect(take(watches, "m1")).toEqual({ unknown: null, paths: [".", "a"], trees: ["a"] });
  // The event of a directory that was found when its parent was read.
  watches.handle(event(wds.get(join(root, "a"))!, IN_CREATE | IN_ISDIR, "b"));
  watches.handle(event(wds.get(join(root, "a/b"))!, IN_MODIFY, "file"));
  expect(take(watches, "m1")).toEqual({ unknown: null, paths: ["a", "a/b", "a/b/file"], trees: [] });
});

it("reports a directory that was renamed under its new path, and unwatches one that was moved out", () => {
  const root = createTree("old/sub");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  renameSync(join(root, "old"), join(root, "new"));
  watches.handle(event(wds.get(root)!, IN_MOVED_FROM | IN_ISDIR, "old"));
  expect([...wds.keys()]).toEqual([root]);
  watches.handle(event(wds.get(root)!, IN_MOVED_TO | IN_ISDIR, "new"));
  watches.handle(event(wds.get(join(root, "new/sub"))!, IN_MODIFY, "file"));
  expect(take(watches, "m1")).toEqual({
    unknown: null,
    paths: [".", "new", "new/sub/file", "old"],
    trees: ["new"],
  });
});

it("keeps the set bounded", () => {
  const root = createTree();
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  for (let index = 0; index <= MAX_PATHS; index += 1)
    watches.handle(event(wds.get(root)!, IN_MODIFY, `${index}`));
  expect(watches.take("m1")).toMatchObject({ unknown: expect.stringContaining("10000"), paths: [] });
  expect(watches.take("m1")).toEqual(EMPTY);
});

/** More directories than are read at once. */
function createLargeTree(root: string): void {
  for (let index = 0; index < 60; index += 1)
    for (let below = 0; below < 30; below += 1)
      mkdirSync(join(root, `${index}/${below}`), { recursive: true });
}

it("reads a large tree in parts: its set is unknown until all of it has been read, those of others are not", () => {
  const [large, small] = [createTree(), createTree("a")];
  createLargeTree(large);
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("small", treeAt(small));
  watches.add("large", treeAt(large));
  for (const key of ["small", "large"]) expect(watches.take(key).unknown).toContain("before the watch");
  const isWatched = (path: string) => wds.has(join(large, path));
  const all = Array.from({ length: 60 }, (_, index) => `${index}/29`);
  expect(all.every(isWatched)).toBe(false);
  watches.report();
  // The kernel reports nothing of this: the directory is not watched yet.
  mkdirSync(join(large, "0/0/new"));
  watches.handle(event(wds.get(join(small, "a"))!, IN_MODIFY, "file"));
  expect(take(watches, "small").paths).toEqual(["a/file"]);
  expect(watches.take("large").unknown).toContain("not all of its directories");
  while (watches.readOn());
  expect(all.every(isWatched)).toBe(true);
  expect(isWatched("0/0/new")).toBe(true);
  expect(watches.report().find(({ key }) => key === "large")!.changes).toBeGreaterThan(0);
  expect(watches.take("large").unknown).toContain("not all of its directories");
  expect(watches.take("large")).toEqual(EMPTY);
  watches.handle(event(wds.get(join(large, "0/0/new"))!, IN_MODIFY, "file"));
  expect(watches.take("large").paths).toEqual(["0/0/new/file"]);
  expect(watches.readOn()).toBe(false);
});

it("reads a large directory that is moved into a tree in parts", () => {
  const [root, outside] = [createTree("a"), createTree()];
  createLargeTree(join(outside, "large"));
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  renameSync(join(outside, "large"), join(root, "large"));
  watches.handle(event(wds.get(root)!, IN_MOVED_TO | IN_ISDIR, "large"));
  expect(watches.take("m1").unknown).toContain("not all of its directories");
  // It leaves again before it has been read.
  renameSync(join(root, "large"), join(outside, "large"));
  watches.handle(event(wds.get(root)!, IN_MOVED_FROM | IN_ISDIR, "large"));
  while (watches.readOn());
  expect(watches.take("m1").unknown).toContain("not all of its directories");
  expect([...wds.keys()].sort()).toEqual([root, join(root, "a")]);
  expect(watches.take("m1")).toEqual(EMPTY);
});

it("watches a large tree again when events are lost while it is being read", () => {
  const root = createTree();
  createLargeTree(root);
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.handle(event(-1, IN_Q_OVERFLOW));
  expect(watches.readOn()).toBe(false);
  rmSync(join(root, "5"), { recursive: true });
  watches.refresh();
  while (watches.readOn());
  expect(watches.take("m1").unknown).not.toBe(null);
  expect(watches.take("m1")).toEqual(EMPTY);
  expect(wds.size).toBe(1 + 59 * 31);
});

it("puts quiet paths into the set without counting them", () => {
  const root = createTree("logs");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root, ["/logs/skip"], ["/logs/agent.log*"]));
  watches.take("m1");
  watches.report();
  for (const name of ["agent.log", "skip"])
    watches.handle(event(wds.get(join(root, "logs"))!, IN_MODIFY, name));
  expect(watches.report()).toEqual([]);
  expect(take(watches, "m1").paths).toEqual(["logs/agent.log"]);
});

it("gives up a tree at the kernel's limit, with all of its watches, until another tree is removed", () => {
  const small = createTree("a");
  const large = createTree("1", "2", "3");
  const { inotify, wds } = createKernel(4);
  const watches = watchTrees(inotify);
  watches.add("small", treeAt(small));
  watches.add("large", treeAt(large));
  expect(watches.report()).toEqual([
    { key: "small", changes: 0, unwatched: null },
    { key: "large", changes: 0, unwatched: expect.stringContaining("sysctl fs.inotify.max_user_watches") },
  ]);
  expect([...wds.keys()].sort()).toEqual([small, join(small, "a")]);
  expect(watches.take("large").unknown).toContain("max_user_watches");
  watches.remove("small");
  watches.refresh();
  watches.readOn();
  expect(watches.report()).toEqual([{ key: "large", changes: 1, unwatched: null }]);
  expect(watches.take("large").unknown).not.toBe(null);
  expect(watches.take("large")).toEqual(EMPTY);
});

it("watches a tree that reached the limit when the user has raised it", () => {
  const root = createTree("1", "2", "3");
  const { inotify, limits } = createKernel(2);
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.refresh();
  expect(watches.report()[0]!.unwatched).not.toBe(null);
  limits.watches = 100;
  watches.refresh();
  expect(watches.report()[0]!.unwatched).toBe(null);
});

it("returns an unknown set after an overflow, and finds new directories without removing other watches", () => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  watches.report();
  const before = new Map(wds);
  mkdirSync(join(root, "lost/deep"), { recursive: true });
  watches.handle(event(-1, IN_Q_OVERFLOW));
  expect(watches.report()).toEqual([{ key: "m1", changes: 1, unwatched: null }]);
  expect(watches.take("m1").unknown).toContain("overflowed");
  expect([...wds].slice(0, 2)).toEqual([...before]);
  watches.handle(event(wds.get(join(root, "lost/deep"))!, IN_MODIFY, "file"));
  expect(take(watches, "m1").paths).toEqual(["lost/deep/file"]);
});

it("returns an unknown set for a tree after a burst in it, and complete sets for the others", () => {
  const [one, two] = [createTree(), createTree()];
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  for (const [key, root] of Object.entries({ one, two })) {
    watches.add(key, treeAt(root));
    watches.take(key);
  }
  mkdirSync(join(one, "new"));
  watches.note(event(wds.get(one)!, IN_CREATE | IN_ISDIR, "new"));
  expect(watches.take("two")).toEqual(EMPTY);
  expect(watches.take("one").unknown).toContain("burst");
  expect([...wds.keys()]).toContain(join(one, "new"));
});

it.each([
  ["moved", IN_MOVE_SELF],
  ["unmounted", IN_UNMOUNT],
  ["lost", IN_IGNORED],
])("knows nothing after the root was %s, and watches what is there when it comes back", (_, mask) => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  watches.handle(event(wds.get(root)!, mask));
  expect(watches.take("m1").unknown).not.toBe(null);
  watches.handle(event(wds.get(root)!, IN_MODIFY, "file"));
  expect(take(watches, "m1").paths).toEqual(["file"]);
});

it("reports a root that is gone, and watches it when it is back", () => {
  const root = createTree();
  const { inotify, wds } = createKernel();
  const missing = {
    ...inotify,
    add(path: string | Buffer) {
      if (!isThere) throw Object.assign(new Error("gone"), { code: "ENOENT" });
      return inotify.add(path);
    },
  };
  let isThere = false;
  const watches = watchTrees(missing);
  watches.add("m1", treeAt(root));
  expect(watches.report()[0]!.unwatched).toContain("gone");
  isThere = true;
  watches.refresh();
  expect(watches.report()[0]!.unwatched).toBe(null);
  expect(wds.size).toBe(1);
});

it("returns an unknown set after a mount in the tree, and does not watch a network file system", () => {
  const root = createTree("a");
  const { inotify, mounts } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.take("m1");
  watches.checkMounts();
  expect(watches.take("m1")).toEqual(EMPTY);
  mounts.push({ path: join(root, "a"), type: "tmpfs", key: "2" });
  watches.checkMounts();
  expect(watches.take("m1").unknown).toContain("mounted");
  mounts.push({ path: root, type: "nfs4", key: "3" });
  watches.checkMounts();
  watches.refresh();
  expect(watches.report()[0]!.unwatched).toBe(
    `${root} is a nfs4 file system, whose changes inotify does not report`,
  );
});

it("reports a change of a directory that two trees share in both, and ends its watch with the last", () => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", treeAt(root));
  watches.add("m2", { roots: [{ path: join(root, "a"), prefix: "worktree" }], ignore: ["/worktree/skip"] });
  for (const key of ["m1", "m2"]) watches.take(key);
  const handle = (name: string) => {
    watches.handle(event(wds.get(join(root, "a"))!, IN_MODIFY, name));
    return [watches.take("m1").paths, watches.take("m2").paths];
  };
  expect(handle("new")).toEqual([["a/new"], ["worktree/new"]]);
  expect(handle("skip")).toEqual([["a/skip"], []]);
  watches.remove("m1");
  expect(handle("other")).toEqual([[], ["worktree/other"]]);
  watches.remove("m2");
  expect(wds.size).toBe(0);
});
