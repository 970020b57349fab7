// The watcher of trees, on the real kernel: every kind of change is counted, and nothing outside the tree is.
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openTreeWatcher, type TreeWatcher } from "../../src/pit/watch/tree-watcher.ts";

let directory: string;
let root: string;
let watcher: TreeWatcher;

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-watch-")));
  root = join(directory, "cell");
  mkdirSync(join(root, "worktree"), { recursive: true });
  mkdirSync(join(root, "logs"));
  watcher = openTreeWatcher();
});
afterEach(async () => {
  await watcher[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Watches the cell; returns a function that reports whether `action` is counted as a change. */
async function watch(ignore: readonly string[] = []): Promise<(action: () => void) => Promise<boolean>> {
  watcher.add("m1", { roots: [{ path: root, prefix: "" }], ignore });
  await watcher.sync();
  return async (action) => {
    const before = watcher.read("m1")!;
    expect(before.unwatched).toBe(null);
    action();
    await watcher.sync();
    return watcher.read("m1")!.changes > before.changes;
  };
}

const at = (path: string) => join(root, "worktree", path);

it("counts every kind of change of a file", async () => {
  writeFileSync(at("old"), "");
  const counts = await watch();
  expect(await counts(() => writeFileSync(at("new"), ""))).toBe(true);
  expect(await counts(() => appendFileSync(at("old"), "x"))).toBe(true);
  expect(await counts(() => chmodSync(at("old"), 0o600))).toBe(true);
  expect(await counts(() => renameSync(at("old"), at("renamed")))).toBe(true);
  expect(await counts(() => rmSync(at("renamed")))).toBe(true);
  expect(await counts(() => symlinkSync("nowhere", at("link")))).toBe(true);
  expect(await counts(() => {})).toBe(false);
});

it("watches directories that appear, at any depth and however many at once", async () => {
  const counts = await watch();
  expect(await counts(() => mkdirSync(at("a/b/c"), { recursive: true }))).toBe(true);
  expect(await counts(() => writeFileSync(at("a/b/c/file"), ""))).toBe(true);
  expect(
    await counts(() => {
      for (let index = 0; index < 2000; index += 1) mkdirSync(at(`many/${index}/deep`), { recursive: true });
    }),
  ).toBe(true);
  expect(await counts(() => writeFileSync(at("many/1999/deep/file"), ""))).toBe(true);
  expect(await counts(() => writeFileSync(at("many/0/deep/file"), ""))).toBe(true);
});

it("follows directories that move in, within and out of the tree", async () => {
  const outside = join(directory, "outside");
  mkdirSync(join(outside, "sub"), { recursive: true });
  const counts = await watch();
  expect(await counts(() => renameSync(outside, at("in")))).toBe(true);
  expect(await counts(() => writeFileSync(at("in/sub/file"), ""))).toBe(true);
  expect(await counts(() => renameSync(at("in"), at("within")))).toBe(true);
  expect(await counts(() => writeFileSync(at("within/sub/file"), "x"))).toBe(true);
  mkdirSync(at("target"));
  expect(await counts(() => renameSync(at("within"), at("target")))).toBe(true);
  expect(await counts(() => writeFileSync(at("target/sub/file"), "xx"))).toBe(true);
  expect(await counts(() => renameSync(at("target"), outside))).toBe(true);
  expect(await counts(() => writeFileSync(join(outside, "sub/file"), "xxx"))).toBe(false);
});

it("watches a directory that was deleted and created again", async () => {
  mkdirSync(at("again/sub"), { recursive: true });
  const counts = await watch();
  rmSync(at("again"), { recursive: true });
  mkdirSync(at("again/sub"), { recursive: true });
  await watcher.sync();
  expect(await counts(() => writeFileSync(at("again/sub/file"), ""))).toBe(true);
});

it("counts nothing that is ignored, behind a link, or in a tree that was removed", async () => {
  const outside = join(directory, "outside");
  mkdirSync(outside);
  symlinkSync(outside, at("link"));
  mkdirSync(at("node_modules/deep"), { recursive: true });
  const counts = await watch(["/logs/agent.log*", "node_modules"]);
  expect(await counts(() => writeFileSync(join(outside, "file"), ""))).toBe(false);
  expect(await counts(() => writeFileSync(join(root, "logs/agent.log"), ""))).toBe(false);
  expect(await counts(() => writeFileSync(at("node_modules/deep/file"), ""))).toBe(false);
  expect(await counts(() => writeFileSync(join(root, "logs/other.log"), ""))).toBe(true);
  watcher.remove("m1");
  writeFileSync(at("file"), "");
  await watcher.sync();
  expect(watcher.read("m1")).toBe(undefined);
});

it("handles names that are not UTF-8", async () => {
  const name = Buffer.concat([Buffer.from(at("")), Buffer.of(0x64, 0xff, 0xfe)]);
  const counts = await watch();
  expect(await counts(() => mkdirSync(name))).toBe(true);
  expect(await counts(() => writeFileSync(Buffer.concat([name, Buffer.from("/file")]), ""))).toBe(true);
  expect(await counts(() => rmSync(Buffer.concat([name, Buffer.from("/file")])))).toBe(true);
});

it("keeps two trees apart, one of them in two places", async () => {
  const elsewhere = join(directory, "app");
  mkdirSync(elsewhere);
  const second = join(directory, "second");
  mkdirSync(second);
  watcher.add("m1", { roots: [{ path: root, prefix: "" }], ignore: [] });
  watcher.add("m2", {
    roots: [
      { path: second, prefix: "" },
      { path: elsewhere, prefix: "worktree" },
    ],
    ignore: ["/worktree/skip"],
  });
  await watcher.sync();
  writeFileSync(join(elsewhere, "file"), "");
  await watcher.sync();
  expect(watcher.read("m1")!.changes).toBe(0);
  const { changes } = watcher.read("m2")!;
  expect(changes).toBeGreaterThan(0);
  writeFileSync(join(elsewhere, "skip"), "");
  await watcher.sync();
  expect(watcher.read("m2")!.changes).toBe(changes);
});
