import { describe, expect, it } from "vitest";
import type { Entry } from "../model/entry.ts";
import { goneFromRows, orderItems, sameEntry, sortSuspects } from "./classify.ts";
import type { Found } from "./found.ts";
import { cacheFromListing } from "./stat-cache-builder.ts";

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
    row: -1,
    unchanged: false,
    size: 3,
    nlink: 1,
    ...given,
  });
  const sort = (paths: Found[], cache?: ReturnType<typeof cacheFromListing>) =>
    sortSuspects({
      walk: { found: paths },
      cache,
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
    const cache = cacheFromListing("m", listing);
    const { certain, doubtful } = sort(
      [found("same", { row: 1 }), found("grown", { row: 2, size: 4 }), found("new")],
      cache,
    );
    expect(doubtful.flatMap(({ items }) => items.map(({ path }) => path))).toEqual(["same"]);
    expect(certain.map(({ path }) => path)).toEqual(["grown", "new"]);
  });
});

it("goneFromRows returns every path below a removed row, and whether it was a directory", () => {
  const listing = new Map(
    [entry(".", { type: "directory" }), entry("d", { type: "directory" }), entry("d/f"), entry("e")].map(
      (each) => [each.path, each],
    ),
  );
  const cache = cacheFromListing("m", listing);
  expect(goneFromRows(cache, [3, 1])).toEqual([
    { path: "d", wasDirectory: true },
    { path: "d/f", wasDirectory: false },
  ]);
});
