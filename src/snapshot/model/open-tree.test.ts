// Paths through open directories: what is replaced by a link is not followed, with and without anchors.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createStat } from "../../platform/file-stat.ts";
import { changeMode, OpenTree } from "./open-tree.ts";
import { systemPath } from "./path-bytes.ts";

let top: string;
let root: string;
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), "lazarus-tree-"));
  root = join(top, "root");
  fs.mkdirSync(join(root, "a/b"), { recursive: true });
  fs.mkdirSync(join(top, "outside"));
  fs.writeFileSync(join(root, "a/b/file"), "inside");
  fs.writeFileSync(join(top, "outside/file"), "outside");
});
afterEach(() => fs.rmSync(top, { recursive: true }));

const read = (tree: OpenTree, path: string) => fs.readFileSync(systemPath(tree.at(path)), "utf8");
const codeOf = (work: () => unknown) => {
  try {
    work();
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
};
const openHere = () =>
  process.platform === "linux"
    ? fs.readdirSync("/proc/self/fd").filter((fd) => {
        try {
          return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(top);
        } catch {
          return false;
        }
      }).length
    : 0;

describe.each([
  ["with anchors", {}],
  ["without anchors", { anchorOf: () => "/nowhere" }],
])("an open tree %s", (_, options) => {
  it("reads files and directories, even when the root is a link", () => {
    fs.symlinkSync(root, join(top, "link"));
    using tree = new OpenTree(join(top, "link"), options);
    expect(read(tree, "a/b/file")).toBe("inside");
    expect(fs.readdirSync(tree.directory("a"))).toEqual(["b"]);
    expect(fs.readdirSync(tree.directory("."))).toEqual(["a"]);
  });

  it("refuses a link in the place of a directory", () => {
    fs.renameSync(join(root, "a/b"), join(root, "a/moved"));
    fs.symlinkSync(join(top, "outside"), join(root, "a/b"));
    using tree = new OpenTree(root, options);
    expect(codeOf(() => tree.at("a/b/file"))).toBe("ENOTDIR");
    expect(codeOf(() => tree.directory("a/b"))).toBe("ENOTDIR");
    expect(codeOf(() => tree.at("missing/file"))).toBe("ENOENT");
    expect(fs.lstatSync(tree.at("a/b")).isSymbolicLink()).toBe(true);
  });

  it("takes the stat of a path, of links themselves and of nothing behind them", () => {
    fs.renameSync(join(root, "a/b"), join(root, "a/moved"));
    fs.symlinkSync(join(top, "outside"), join(root, "a/b"));
    using tree = new OpenTree(root, options);
    const stat = createStat();
    for (const path of [".", "a", "a/moved", "a/moved/file", "a/b"]) {
      const { ino, mode, size } = fs.lstatSync(join(root, path));
      expect(tree.stat(path, stat)).toMatchObject({ ino, mode, size });
    }
    expect(tree.stat("a/missing", stat)).toBeUndefined();
    expect(codeOf(() => tree.stat("a/b/file", stat))).toBe("ENOTDIR");
    expect(codeOf(() => tree.stat("missing/file", stat))).toBe("ENOENT");
  });

  it("takes names that are not UTF-8", () => {
    const name = Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff)]);
    if (process.platform === "darwin") return;
    fs.mkdirSync(name);
    fs.writeFileSync(Buffer.concat([name, Buffer.from("/x")]), "bytes");
    using tree = new OpenTree(root, options);
    expect(read(tree, "\udcff/x")).toBe("bytes");
    expect(tree.stat("\udcff", createStat())!.ino).toBe(fs.lstatSync(name).ino);
    expect(tree.stat("\udcff/x", createStat())!.size).toBe("bytes".length);
  });
});

describe("an open tree", () => {
  it("stays in a directory that is replaced by a link after it was opened", () => {
    using tree = new OpenTree(root);
    const file = tree.at("a/b/file");
    fs.renameSync(join(root, "a"), join(root, "moved"));
    fs.mkdirSync(join(root, "a"));
    fs.symlinkSync(join(top, "outside"), join(root, "a/b"));
    expect(fs.readFileSync(file, "utf8")).toBe("inside");
    expect(read(tree, "a/b/file")).toBe("inside");
    tree.forget("a");
    expect(codeOf(() => tree.at("a/b/file"))).toBe("ENOTDIR");
  });

  it("reaches any depth with few descriptors, and closes them", () => {
    const deep = Array.from({ length: 300 }, (_, n) => `d${n}`).join("/");
    fs.mkdirSync(join(root, deep), { recursive: true });
    fs.writeFileSync(join(root, deep, "file"), "deep");
    const before = openHere();
    {
      using tree = new OpenTree(root);
      const first = tree.at("a/b/file");
      expect(read(tree, `${deep}/file`)).toBe("deep");
      // The path before the last one is still valid.
      expect(fs.readFileSync(first, "utf8")).toBe("inside");
      for (let depth = 299; depth > 0; depth -= 1) tree.directory(deep.split("/").slice(0, depth).join("/"));
      expect(openHere() - before).toBeLessThan(40);
    }
    expect(openHere()).toBe(before);
  });

  it("opens files, and no file behind a link", () => {
    using tree = new OpenTree(root);
    const opened = (path: string) => {
      const fd = tree.openFile(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
      try {
        return fs.readFileSync(fd, "utf8");
      } finally {
        fs.closeSync(fd);
      }
    };
    expect(opened("a/b/file")).toBe("inside");
    fs.symlinkSync(join(top, "outside"), join(root, "link"));
    fs.symlinkSync("b/file", join(root, "a/last"));
    expect(codeOf(() => opened("link/file"))).toBe("ENOTDIR");
    expect(codeOf(() => opened("a/last"))).toBe("ELOOP");
    expect(codeOf(() => opened("a/missing"))).toBe("ENOENT");
  });

  it("shows every directory that it opens, parents first", () => {
    const seen: string[] = [];
    using tree = new OpenTree(root, { onOpen: (path) => seen.push(path) });
    tree.at("a/b/file");
    tree.at("a/b/other");
    expect(seen).toEqual([".", "a", "a/b"]);
  });
});

it("changes the mode of a file and never of a link's target", () => {
  const file = join(top, "outside/file");
  fs.chmodSync(file, 0o600);
  fs.symlinkSync(file, join(root, "link"));
  // On macOS a link has its own mode.
  expect(codeOf(() => changeMode(join(root, "link"), 0o644))).toBe(
    process.platform === "darwin" ? undefined : "ELOOP",
  );
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  changeMode(file, 0o640);
  expect(fs.statSync(file).mode & 0o777).toBe(0o640);
  fs.chmodSync(file, 0);
  changeMode(file, 0o600);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
});
