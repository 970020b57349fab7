import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { removeTree } from "../../platform/remove-tree.ts";
import type { TarEntry } from "../tar/read.ts";
import { cleanPath } from "./archive-path.ts";
import { createUnpacker, type Unpacker, type UnpackOptions } from "./unpack.ts";

let home: string;
let root: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-unpack-"));
  root = join(home, "root");
  mkdirSync(root);
});
afterEach(() => removeTree(home));

const OPTIONS: UnpackOptions = { owners: false, trusted: false, maxEntries: 1000 };
const LAYER: UnpackOptions = { ...OPTIONS, layer: { unescape: (name) => name } };

function put(unpacker: Unpacker, path: string, given: Partial<TarEntry> & { content?: string } = {}): void {
  const { content = "", ...rest } = given;
  const type = rest.type ?? "file";
  unpacker.entry({
    mode: type === "directory" ? 0o755 : 0o644,
    uid: 0,
    gid: 0,
    mtimeSec: 1000,
    mtimeNs: 5,
    size: content.length,
    path,
    type,
    ...rest,
  });
  if (content !== "") unpacker.data(Buffer.from(content));
  unpacker.close();
}

describe("unpacking", () => {
  it("creates files, links, holes and directories with their modes and times", () => {
    const unpacker = createUnpacker(root, OPTIONS);
    put(unpacker, "./", { type: "directory", mode: 0o750 });
    put(unpacker, "d/", { type: "directory", mode: 0o500 });
    put(unpacker, "d/f", { content: "hello", mode: 0o640 });
    put(unpacker, "implied/deep/f", { content: "x" });
    put(unpacker, "h", { type: "link", target: "d/f" });
    put(unpacker, "s", { type: "symlink", target: "d/f" });
    put(unpacker, "holes", {
      content: "ab",
      size: 100_000,
      extents: [
        [50_000, 1],
        [60_000, 1],
      ],
    });
    unpacker.finish();
    unpacker.setDirectoryModes(root);
    expect(statSync(join(root, "d")).mode & 0o777).toBe(0o500);
    expect(statSync(join(root, "d")).mtimeMs).toBeCloseTo(1_000_000, 0);
    expect(statSync(root).mode & 0o777).toBe(0o750);
    expect(statSync(join(root, "h")).ino).toBe(statSync(join(root, "d/f")).ino);
    expect(readFileSync(join(root, "s"), "utf8")).toBe("hello");
    const holes = readFileSync(join(root, "holes"));
    expect([holes.length, holes[50_000], holes[60_000], holes[0]]).toEqual([100_000, 0x61, 0x62, 0]);
    expect(statSync(join(root, "holes")).blocks * 512).toBeLessThan(100_000);
    expect(readFileSync(join(root, "implied/deep/f"), "utf8")).toBe("x");
  });

  it("applies whiteouts of a layer to the layers below it", () => {
    const unpacker = createUnpacker(root, LAYER);
    put(unpacker, "keep", { content: "1" });
    put(unpacker, "gone/deep", { content: "1" });
    put(unpacker, "opaque/old", { content: "1" });
    unpacker.withOptions(LAYER);
    put(unpacker, ".wh.gone");
    put(unpacker, "opaque/new", { content: "2" });
    put(unpacker, "opaque/.wh..wh..opq");
    put(unpacker, "nowhere/.wh.x");
    unpacker.finish();
    expect(readdirSync(root).sort()).toEqual(["keep", "opaque"]);
    expect(readdirSync(join(root, "opaque"))).toEqual(["new"]);
  });

  it("treats a whiteout-like name as a plain name outside of layers", () => {
    const unpacker = createUnpacker(root, OPTIONS);
    put(unpacker, "a", { content: "1" });
    put(unpacker, ".wh.a", { content: "2" });
    expect(readdirSync(root).sort()).toEqual([".wh.a", "a"]);
  });

  it("deletes nothing outside the root through a whiteout", () => {
    const unpacker = createUnpacker(root, LAYER);
    put(unpacker, "d", { type: "directory" });
    put(unpacker, "link", { type: "symlink", target: home });
    for (const path of [".wh...", "d/.wh...", ".wh."]) {
      expect(() => put(unpacker, path), path).toThrow(/refused/);
    }
    put(unpacker, "link/.wh.root");
    expect(existsSync(root)).toBe(true);
    expect(lstatSync(join(root, "link")).isSymbolicLink()).toBe(true);
  });

  it("normalizes harmless paths and refuses the rest", () => {
    expect(["a", "./a", "a/", "a//b", "a/./b", ".", "./"].map(cleanPath)).toEqual([
      "a",
      "a",
      "a",
      "a/b",
      "a/b",
      ".",
      ".",
    ]);
    for (const path of ["/a", "..", "a/..", "../a", "a/../b", "", "a\0b"])
      expect(() => cleanPath(path), path).toThrow(/refused/);
  });
});
