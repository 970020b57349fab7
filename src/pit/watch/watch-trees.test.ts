import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { IN_CREATE, IN_ISDIR, IN_MODIFY, IN_Q_OVERFLOW } from "../../platform/libc/inotify.ts";
import { watchTrees } from "./watch-trees.ts";

function createTree(...directories: string[]): string {
  const root = mkdtempSync(join(tmpdir(), "lazarus-watch-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const path of directories) mkdirSync(join(root, path), { recursive: true });
  return root;
}

/** A kernel that allows `limit` watches. */
function createKernel(limit = Number.POSITIVE_INFINITY) {
  const wds = new Map<string, number>();
  let last = 0;
  return {
    wds,
    inotify: {
      add(path: Buffer) {
        const known = wds.get(path.toString());
        if (known !== undefined) return known;
        if (wds.size >= limit) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
        last += 1;
        wds.set(path.toString(), last);
        return last;
      },
      remove(wd: number) {
        for (const [path, each] of wds) if (each === wd) wds.delete(path);
      },
    },
  };
}

function eventOf(wd: number, mask: number, name = ""): Buffer {
  const padded = name === "" ? 0 : Math.ceil((name.length + 1) / 16) * 16;
  const event = Buffer.alloc(16 + padded);
  event.writeInt32LE(wd, 0);
  event.writeUInt32LE(mask, 4);
  event.writeUInt32LE(padded, 12);
  event.write(name, 16);
  return event;
}

it("gives up a tree at the kernel's limit, with all of its watches, and keeps the others", () => {
  const small = createTree("a");
  const large = createTree("1", "2", "3", "4");
  const { inotify, wds } = createKernel(4);
  const watches = watchTrees(inotify);
  watches.add("small", { roots: [{ path: small, prefix: "" }], ignore: [] });
  watches.add("large", { roots: [{ path: large, prefix: "" }], ignore: [] });
  expect(watches.report()).toEqual([
    { key: "small", changes: 0, unwatched: null },
    { key: "large", changes: 0, unwatched: expect.stringContaining("fs.inotify.max_user_watches") },
  ]);
  expect([...wds.keys()].sort()).toEqual([small, join(small, "a")]);
});

it("counts an overflow as a change of every tree and finds directories whose creation was lost", () => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", { roots: [{ path: root, prefix: "" }], ignore: [] });
  watches.report();
  mkdirSync(join(root, "lost/deep"), { recursive: true });
  const overflow = eventOf(-1, IN_Q_OVERFLOW);
  watches.handle(overflow, overflow.length);
  expect(watches.report()).toEqual([{ key: "m1", changes: 1, unwatched: null }]);
  const modified = eventOf(wds.get(join(root, "lost/deep"))!, IN_MODIFY, "file");
  watches.handle(modified, modified.length);
  expect(watches.report()).toEqual([{ key: "m1", changes: 2, unwatched: null }]);
  expect(watches.report()).toEqual([]);
});

it("counts a change of a directory that two trees share in both, and ends its watch with the last", () => {
  const root = createTree("a");
  const { inotify, wds } = createKernel();
  const watches = watchTrees(inotify);
  watches.add("m1", { roots: [{ path: root, prefix: "" }], ignore: [] });
  watches.add("m2", { roots: [{ path: join(root, "a"), prefix: "worktree" }], ignore: ["/worktree/skip"] });
  watches.report();
  const event = (name: string) => {
    const bytes = eventOf(wds.get(join(root, "a"))!, IN_CREATE | IN_ISDIR, name);
    watches.handle(bytes, bytes.length);
    return watches.report().map(({ key }) => key);
  };
  expect(event("new")).toEqual(["m1", "m2"]);
  expect(event("skip")).toEqual(["m1"]);
  watches.remove("m1");
  expect(event("other")).toEqual(["m2"]);
  watches.remove("m2");
  expect(wds.size).toBe(0);
});
