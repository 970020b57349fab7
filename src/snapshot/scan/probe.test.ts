import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MUST_CHECK, type Probers, type ProbeTask, probeRows, UNCHANGED } from "./probe.ts";
import { decodeStatCache, encodeStatCache, type StatCache } from "./stat-cache.ts";
import { createStatCacheBuilder } from "./stat-cache-builder.ts";

const DIRECTORIES = 30;
const FILES = 40;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lazarus-probe-"));
  for (let d = 0; d < DIRECTORIES; d += 1) {
    mkdirSync(join(root, `d${d}`));
    for (let f = 0; f < FILES; f += 1)
      writeFileSync(join(root, `d${d}`, f === 7 ? "größe 漢" : `f${f}`), `${f}`);
  }
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function cacheOf(isRacy: (path: string) => boolean = () => false): { cache: StatCache; paths: string[] } {
  const directories = readdirSync(root).sort();
  const paths = [".", ...directories];
  for (const name of directories)
    paths.push(...readdirSync(join(root, name)).map((file) => `${name}/${file}`));
  const builder = createStatCacheBuilder(paths.length);
  for (const [row, path] of paths.entries()) {
    const stat = lstatSync(join(root, path), { bigint: true });
    const plain = lstatSync(join(root, path));
    const seen = {
      entry: {
        path,
        type: stat.isFile() ? ("file" as const) : ("directory" as const),
        mode: Number(stat.mode) & 0o7777,
        uid: 0,
        gid: 0,
        mtimeSec: Number(stat.mtimeNs / 1_000_000_000n),
        mtimeNs: Number(stat.mtimeNs % 1_000_000_000n),
        size: stat.isFile() ? Number(stat.size) : 0,
        sha256: "",
      },
      mark: { ctimeMs: plain.ctimeMs, ino: plain.ino, nlink: plain.nlink },
    };
    builder.add(path.slice(path.lastIndexOf("/") + 1), seen, isRacy(path));
    builder.setChildren(row, 0, 0, true);
  }
  builder.setChildren(0, 1, DIRECTORIES, true);
  for (let d = 0; d < DIRECTORIES; d += 1)
    builder.setChildren(1 + d, 1 + DIRECTORIES + d * FILES, FILES, true);
  const bytes = encodeStatCache(builder.finish("sha256:none"));
  const shared = new SharedArrayBuffer(bytes.length);
  Buffer.from(shared as ArrayBufferLike as ArrayBuffer).set(bytes);
  return { cache: decodeStatCache(shared)!, paths };
}

const suspects = (paths: string[], verdicts: Uint8Array | undefined) =>
  paths.filter((_, row) => verdicts![row] !== UNCHANGED);

test("untouched paths are unchanged, on any number of threads", () => {
  const { cache, paths } = cacheOf();
  for (let round = 0; round < 5; round += 1)
    expect(suspects(paths, probeRows(root, cache, { minRows: 0 }))).toEqual([]);
});

const TAKEN = 1;

/** A thread that takes the first chunk of rows and then hangs. */
function hungThread(marks: boolean): Probers & { task?: ProbeTask } {
  return {
    give(task) {
      this.task = task;
      const chunk = Atomics.add(new Int32Array(task.chunks, 0, 1), 0, 1);
      if (marks) Atomics.store(new Int32Array(task.chunks, 4), chunk, TAKEN);
    },
    [Symbol.dispose]() {},
  };
}

test.each([
  ["before it marked its chunk", false],
  ["while checking", true],
])("the main thread checks the rows of a thread that hung %s", (_, marks) => {
  const { cache, paths } = cacheOf((path) => path === "d1");
  const thread = hungThread(marks);
  const verdicts = probeRows(root, cache, { probers: thread, skip: ["d2"] })!;
  expect(suspects(paths, verdicts).filter((path) => !/^d2(\/|$)/.test(path))).toEqual(["d1"]);
  // What the thread writes later does not change the verdicts.
  const before = [...verdicts];
  new Uint8Array(thread.task!.verdicts).fill(UNCHANGED);
  expect([...verdicts]).toEqual(before);
});

test("written, removed, extended and racy paths get the verdict MUST_CHECK", () => {
  const { cache, paths } = cacheOf((path) => path === "d3/f3");
  writeFileSync(join(root, "d1", "größe 漢"), "more than it was");
  rmSync(join(root, "d9", "f9"));
  writeFileSync(join(root, "d20", "new"), "");
  const verdicts = probeRows(root, cache, { minRows: 0 })!;
  expect(suspects(paths, verdicts).sort()).toEqual(["d1/größe 漢", "d20", "d3/f3", "d9", "d9/f9"]);
  expect(verdicts[paths.indexOf("d3/f3")]).toBe(MUST_CHECK);
});

test("skipped paths and everything below them get no verdict", () => {
  const { cache, paths } = cacheOf();
  const below = suspects(paths, probeRows(root, cache, { skip: ["d5", "absent/at-all"], minRows: 0 }));
  expect(below.length).toBe(1 + FILES);
  expect(below.every((path) => path === "d5" || path.startsWith("d5/"))).toBe(true);
});

test("a small cache is checked without threads", () => {
  const { cache, paths } = cacheOf();
  writeFileSync(join(root, "d3", "f5"), "changed");
  expect(suspects(paths, probeRows(root, cache))).toEqual(["d3/f5"]);
});

test("a cache that was not read from a file gives no verdicts", () => {
  const { shared: _, ...made } = cacheOf().cache;
  expect(probeRows(root, made)).toBeUndefined();
});

test("a cache with a flipped bit is rejected", () => {
  const { cache } = cacheOf();
  const bytes = new Uint8Array(cache.shared!);
  bytes[bytes.length >> 1]! ^= 1;
  expect(decodeStatCache(cache.shared!)).toBeUndefined();
});
