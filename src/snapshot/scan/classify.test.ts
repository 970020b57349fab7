import { describe, expect, it } from "vitest";
import type { Entry } from "../model/entry.ts";
import { rowsFromListing } from "./changed-rows.ts";
import { orderItems, sameEntry, sortSuspects } from "./classify.ts";
import type { Found } from "./found.ts";
import { NO_ROWS, type StatRows } from "./stat-rows.ts";

const entry = (path: string, given: Partial<Entry> = {}): Entry => ({
  path,
  type: "file",
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtimeSec: 1,
  mtimeNs: 2,
  size: 3,
  sha256: "ab".repeat(32),
  ...given,
});

describe("sameEntry", () => {
  const a = entry("a", { xattrs: [["user.x", "eA=="]], extents: [[0, 1]], group: "g" });

  it("ignores location and path", () => {
    expect(sameEntry(a, { ...a, path: "b", location: { layer: "l", at: 1, length: 1 } } as Entry)).toBe(true);
    expect(sameEntry(entry("a"), { ...entry("a"), xattrs: [], extents: [] })).toBe(true);
  });

  it.each<Partial<Entry>>([
    { type: "fifo" },
    { mode: 0 },
    { uid: 9 },
    { gid: 9 },
    { mtimeSec: 9 },
    { mtimeNs: 9 },
    { size: 9 },
    { sha256: "" },
    { target: "t" },
    { group: "h" },
    { xattrs: [["user.x", "eQ=="]] },
    { extents: [[1, 1]] },
  ])("detects %j", (difference) => expect(sameEntry(a, { ...a, ...difference })).toBe(false));
});

describe("sortSuspects", () => {
  const found = (path: string, given: Partial<Found> = {}): Found => ({
    path,
    type: "file",
    row: undefined,
    unchanged: false,
    size: 3,
    nlink: 1,
    ...given,
  });
  const sort = (paths: Found[], rows: StatRows = NO_ROWS) =>
    sortSuspects({
      walk: { found: new Map(paths.map((each) => [each.path, each])) },
      rows,
      sources: new Map(),
      folded: new Set(),
      groupPrefix: "id",
    });

  it("groups the names of one file under the first", () => {
    const { certain, certainGroups } = sort([
      found("z", { nlink: 3, inode: "1:7" }),
      found("a", { nlink: 3, inode: "1:7" }),
      found("m", { nlink: 2, inode: "1:8" }),
    ]);
    expect(orderItems(certain, certainGroups)).toEqual([
      { path: "m", type: "file", size: 3 },
      { path: "a", type: "file", size: 3, group: "id:0" },
      { path: "z", type: "file", size: 3, group: "id:0", linkTo: "a" },
    ]);
  });

  it("hashes files of the same size, and stores the rest without hashing", () => {
    const listing = new Map(
      [entry(".", { type: "directory" }), entry("same"), entry("grown")].map((each) => [each.path, each]),
    );
    const rows = rowsFromListing(listing);
    const { certain, doubtful } = sort(
      [
        found("same", { row: rows.stat("same") }),
        found("grown", { row: rows.stat("grown"), size: 4 }),
        found("new"),
      ],
      rows,
    );
    expect(doubtful.flatMap(({ items }) => items.map(({ path }) => path))).toEqual(["same"]);
    expect(certain.map(({ path }) => path)).toEqual(["grown", "new"]);
  });
});
