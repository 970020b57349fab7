import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemMachine } from "../../platform/machine.ts";
import type { Entry } from "../model/entry.ts";
import { ChangedRows } from "./changed-rows.ts";
import { createRow } from "./stat-row.ts";
import { countRows, NO_ROWS, pathsBelow, type StatRows } from "./stat-rows.ts";
import { hasManyLinked, openStatStore, type StatStore, saveRows, statStoreFile } from "./stat-store.ts";

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-store-"));
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

function row(path: string, given: Partial<Entry> = {}, ino = 1) {
  const type = given.type ?? "file";
  const entry: Entry = {
    path,
    type,
    mode: 0o644,
    uid: 1,
    gid: 2,
    mtimeSec: -3,
    mtimeNs: 4,
    size: type === "file" ? 5 : 0,
    sha256: type === "file" ? "ab".repeat(32) : "",
    ...given,
  };
  const mark = { ctimeMs: 1_700_000_000_000.25, ino, nlink: 1 };
  return createRow({ entry, mark }, { isRacy: false, isPartial: false });
}

const save = (rows: ChangedRows, ...layers: string[]) =>
  saveRows(systemMachine, statStoreFile(directory), rows, layers);
const open = (isKept: boolean, ...layers: string[]): StatStore | undefined =>
  openStatStore(systemMachine, statStoreFile(directory), layers, isKept);

function withTree(below: StatRows = NO_ROWS): ChangedRows {
  const rows = new ChangedRows(below, "rules");
  for (const path of [".", "d", "d/e"]) rows.set(path, row(path, { type: "directory" }));
  for (const path of ["a", "d/b", "d/e/c"]) rows.set(path, row(path));
  return rows;
}

it("returns the rows that were saved, with any names", () => {
  const rows = withTree();
  const names = ["100%", "%41", "caf\udce9", "\u{1f480}", "x\u0001y", "d\udcff/\udc80"];
  rows.set("d\udcff", row("d\udcff", { type: "directory" }));
  for (const [i, name] of names.entries())
    rows.set(
      name,
      row(name, { xattrs: [["user.x", "eA=="]], target: "t\udcff", group: `g${i % 2}` }, 100 + i),
    );
  rows.set("big", row("big", {}, 2 ** 60));
  rows.skipped = new Set(["d/\udcff"]);
  save(rows, "l1", "l2");
  using store = open(false, "l1", "l2")!;
  for (const [path, expected] of rows.changes) expect(store.entry(path), path).toEqual(expected);
  expect(pathsBelow(store, ".").sort()).toEqual(
    [...rows.changes.keys()].filter((path) => path !== ".").sort(),
  );
  expect([store.rules, store.skipped, store.totals]).toEqual(["rules", rows.skipped, rows.totals]);
  expect(store.namesOf(102)).toEqual(["caf\udce9"]);
  expect(store.namesOf(2 ** 60)).toEqual(["big"]);
  expect([store.groupSize("g0"), store.groupSize("none")]).toEqual([3, 0]);
});

it("changes only what differs, and describes the layers of the last save", () => {
  save(withTree(), "l1");
  {
    using store = open(false, "l1")!;
    const rows = new ChangedRows(store);
    rows.removeTree("d/e");
    rows.remove("a");
    rows.set("a", row("a", { type: "directory" }));
    rows.set("a/n", { ...row("a/n"), isRacy: true });
    rows.set("d/b", { ...row("d/b"), size: 50, ctimeMs: Number.NaN });
    save(rows, "l1", "l2");
  }
  expect(open(false, "l1")).toBe(undefined);
  {
    using behind = open(false, "l1", "l2", "l3")!;
    expect(behind.layers).toEqual(["l1", "l2"]);
  }
  using store = open(false, "l1", "l2")!;
  expect(pathsBelow(store, ".").sort()).toEqual(["a", "a/n", "d", "d/b"]);
  expect([store.totals, countRows(store)]).toEqual([{ files: 2, directories: 3, others: 0, bytes: 55 }, 5]);
  expect(store.racy()).toEqual(["a/n"]);
  expect(store.directories().sort()).toEqual([".", "a", "d"]);
  expect(store.stat("d/b")!.ctimeMs).toBe(Number.NaN);
});

it("knows the files that have names outside the cell", () => {
  const named = (path: string, nlink: number, ino: number, entry: Partial<Entry> = {}) => ({
    ...row(path, entry, ino),
    nlink,
  });
  const rows = withTree();
  rows.set("a", named("a", 2, 7));
  rows.set("d/b", named("d/b", 2, 7));
  rows.set("out", named("out", 2, 8));
  rows.set("d/out", named("d/out", 3, 9));
  rows.set("out-too", named("out-too", 3, 9));
  rows.set("d/e", named("d/e", 5, 10, { type: "directory" }));
  save(rows, "l1");
  using store = open(false, "l1")!;
  const linked = ["d/out", "out", "out-too"];
  expect([rows.linked().sort(), store.linked().sort()]).toEqual([linked, linked]);
  const changed = new ChangedRows(store);
  changed.remove("d/b");
  changed.set("out", named("out", 1, 8));
  changed.set("d/e/third", named("d/e/third", 3, 9));
  changed.set("a", named("a", 2, 7));
  save(changed, "l1", "l2");
  expect(open(false, "l1", "l2")!.linked()).toEqual(["a"]);
});

it("says whether there are many files with several names, even while it is kept open", () => {
  const many = (limit: number) => hasManyLinked(systemMachine, directory, limit);
  expect(many(0)).toBe(false);
  const rows = withTree();
  for (const [n, name] of ["one", "two", "three"].entries())
    rows.set(name, { ...row(name), ino: 100 + n, nlink: 2 });
  save(rows, "l1");
  expect([many(2), many(3)]).toEqual([true, false]);
  {
    using _ = open(true, "l1")!;
  }
  expect([many(2), many(3)]).toEqual([true, false]);
  fs.writeFileSync(statStoreFile(directory), "rubbish");
  expect(many(0)).toBe(false);
});

it("is discarded when it is damaged", () => {
  save(withTree(), "l1");
  const file = statStoreFile(directory);
  for (const damage of [() => fs.writeFileSync(file, "rubbish"), () => fs.rmSync(file)]) {
    damage();
    expect(open(false, "l1")).toBe(undefined);
  }
  save(withTree(), "l2");
  using store = open(false, "l2");
  expect(store).toBeDefined();
});

it("stays open between live points, and notices that its file was replaced", () => {
  save(withTree(), "l1");
  {
    using store = open(true, "l1")!;
    const rows = new ChangedRows(store);
    rows.set("new", row("new"));
    save(rows, "l2");
  }
  expect(fs.existsSync(`${statStoreFile(directory)}-wal`)).toBe(true);
  {
    using store = open(true, "l2")!;
    expect(store.stat("new")).toBeDefined();
  }
  save(withTree(), "l3");
  expect(open(true, "l2")).toBe(undefined);
  using store = open(false, "l3")!;
  expect(store.stat("new")).toBe(undefined);
});
