import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reportSkipped } from "../../../test/snapshot/tools.ts";
import type { Entry } from "../model/entry.ts";
import { encodeHeader, encodeSparseMap, fromTarName, padding, tarPath } from "./header.ts";
import { type TarEntry, TarError, TarReader } from "./read.ts";

type Read = TarEntry & { data: string };

function readAll(archive: Uint8Array, cuts: readonly number[] = []): Read[] {
  const found: Read[] = [];
  let parts: Buffer[] = [];
  let open: TarEntry | undefined;
  const reader = new TarReader({
    entry(entry) {
      expect(open).toBeUndefined();
      open = entry;
      parts = [];
    },
    data: (chunk) => void parts.push(Buffer.from(chunk)),
    close() {
      found.push({ ...open!, data: Buffer.concat(parts).toString("latin1") });
      open = undefined;
    },
  });
  let at = 0;
  for (const cut of [...cuts, archive.length]) {
    reader.push(archive.subarray(at, cut));
    at = cut;
  }
  reader.end();
  return found;
}

const plain: Entry = {
  path: "a",
  type: "file",
  mode: 0o644,
  uid: 1,
  gid: 2,
  mtimeSec: 1_700_000_000,
  mtimeNs: 0,
  size: 0,
  sha256: "",
};

function member(entry: Entry, content = "", linkTo?: string): Buffer {
  const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
  const stored = map.length + content.length;
  const header = encodeHeader(entry, { storedSize: stored, ...(linkTo === undefined ? {} : { linkTo }) });
  return Buffer.concat([header, map, Buffer.from(content, "latin1"), Buffer.alloc(padding(stored))]);
}

const END = Buffer.alloc(1024);

describe("reading a tar stream", () => {
  it("returns what was written, for any chunking", () => {
    const name = fc
      .string({ minLength: 1, maxLength: 150 })
      // No file is called "." or "..": those are directories.
      .filter((text) => !/[/\0]/.test(text) && !/^\.\.?$/.test(text) && text.isWellFormed());
    const entry = fc.record({
      path: fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/")),
      mode: fc.integer({ min: 0, max: 0o7777 }),
      uid: fc.integer({ min: 0, max: 0xffff_ffff }),
      gid: fc.integer({ min: 0, max: 0xffff_ffff }),
      mtimeSec: fc.integer({ min: -(2 ** 33), max: 2 ** 36 }),
      mtimeNs: fc.integer({ min: 0, max: 999_999_999 }),
      content: fc.string({
        maxLength: 1500,
        unit: fc.integer({ min: 0, max: 255 }).map((n) => String.fromCharCode(n)),
      }),
      value: fc.uint8Array({ maxLength: 80 }),
    });
    fc.assert(
      fc.property(
        fc.array(entry, { maxLength: 5 }),
        fc.array(fc.nat(20_000), { maxLength: 8 }),
        (drafts, cuts) => {
          const entries = drafts.map(({ content, value, ...rest }) => ({
            content,
            entry: {
              ...plain,
              ...rest,
              path: rest.path.replaceAll(".wh.", "_"),
              size: content.length,
              xattrs: [["user.k", Buffer.from(value).toString("base64")]] as const,
            },
          }));
          const archive = Buffer.concat([...entries.map((each) => member(each.entry, each.content)), END]);
          const sorted = cuts.filter((cut) => cut < archive.length).sort((a, b) => a - b);
          expect(readAll(archive, sorted)).toEqual(
            entries.map(({ entry: { sha256, ...kept }, content }) => ({ ...kept, data: content })),
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  it("reads links, directories, FIFOs, holes and names that are not UTF-8", () => {
    const archive = Buffer.concat([
      member({ ...plain, path: ".", type: "directory", mode: 0o755 }),
      member({ ...plain, path: "d", type: "directory" }),
      member({ ...plain, path: "d/caf\udce9" }, ""),
      member({ ...plain, path: "s", type: "symlink", target: `../${"x".repeat(150)}` }),
      member({ ...plain, path: "p", type: "fifo" }),
      member({ ...plain, path: "h", size: 4 }, "", "d/file"),
      member(
        {
          ...plain,
          path: "z",
          size: 9000,
          extents: [
            [0, 3],
            [8192, 2],
          ],
        },
        "abcde",
      ),
      END,
    ]);
    const found = readAll(archive);
    expect(
      found.map(({ path, type, target, size, extents, data }) => [path, type, target, size, extents, data]),
    ).toEqual([
      [".", "directory", undefined, 0, undefined, ""],
      ["d", "directory", undefined, 0, undefined, ""],
      ["d/caf\udce9", "file", undefined, 0, undefined, ""],
      ["s", "symlink", `../${"x".repeat(150)}`, 0, undefined, ""],
      ["p", "fifo", undefined, 0, undefined, ""],
      ["h", "link", "d/file", 0, undefined, ""],
      [
        "z",
        "file",
        undefined,
        9000,
        [
          [0, 3],
          [8192, 2],
        ],
        "abcde",
      ],
    ]);
  });

  it("accepts an archive without the two empty blocks and refuses a truncated one", () => {
    const archive = member({ ...plain, size: 600 }, "x".repeat(600));
    expect(readAll(archive)).toHaveLength(1);
    for (const length of [1, 511, 513, 900, 1112]) {
      expect(() => readAll(archive.subarray(0, length)), `cut at ${length}`).toThrow(TarError);
    }
  });

  const hostile: [string, Buffer][] = [
    ["bytes that are not a tar", Buffer.from("hello".repeat(300))],
    ["a header of 4 GiB", huge("x")],
    ["a long name of 4 GiB", huge("L")],
    [
      "a sparse map that extends past the end of its file",
      member({ ...plain, size: 10, extents: [[8, 5]] }, "abcde"),
    ],
    [
      "a sparse map that is not in order",
      member(
        {
          ...plain,
          size: 100,
          extents: [
            [50, 2],
            [10, 3],
          ],
        },
        "abcde",
      ),
    ],
    ["a sparse map longer than the data", member({ ...plain, size: 100, extents: [[0, 50]] }, "abc")],
    ["a PAX record longer than its header", withPax(Buffer.from("999 path=x\n"))],
    ["a PAX record without a length", withPax(Buffer.from("path=x\n"))],
    [
      "a PAX header without an entry after it",
      Buffer.concat([withPax(Buffer.from("8 a=bcd\n")).subarray(0, 1024), END]),
    ],
  ];
  for (const [what, bytes] of hostile) {
    it(`refuses ${what}`, () => {
      expect(() => readAll(Buffer.concat([bytes, END]))).toThrow(TarError);
    });
  }

  it("returns entries or throws a TarError for flipped bytes, never anything else", () => {
    const archive = Buffer.concat([
      member({ ...plain, path: "é".repeat(80), mtimeNs: 5, xattrs: [["user.a", "aGk="]] }, "content"),
      member(
        {
          ...plain,
          path: "z",
          size: 9000,
          extents: [
            [0, 3],
            [8192, 2],
          ],
        },
        "abcde",
      ),
      member({ ...plain, path: "s", type: "symlink", target: "y" }),
      END,
    ]);
    const flip = fc.tuple(fc.nat(archive.length - 1), fc.integer({ min: 1, max: 255 }));
    fc.assert(
      fc.property(fc.array(flip, { minLength: 1, maxLength: 4 }), fc.boolean(), (flips, fixChecksums) => {
        const bytes = Buffer.from(archive);
        for (const [at, mask] of flips) bytes[at]! ^= mask;
        if (fixChecksums) for (let at = 0; at + 512 <= bytes.length; at += 512) fixChecksum(bytes, at);
        try {
          for (const entry of readAll(bytes)) expect(entry.data.length).toBeLessThanOrEqual(bytes.length);
        } catch (error) {
          expect(error).toBeInstanceOf(TarError);
        }
      }),
      { numRuns: 1500 },
    );
  });
});

const gnuTar = spawnSync("tar", ["--version"], { encoding: "utf8" }).stdout?.includes("GNU tar") ?? false;

if (!gnuTar) reportSkipped("archives of GNU tar", "tar is not GNU tar");

describe.skipIf(!gnuTar)("archives of GNU tar", () => {
  const formats = [
    ["--format=v7"],
    ["--format=ustar"],
    ["--format=gnu", "-S"],
    ["--format=pax", "-S", "--sparse-version=0.0"],
    ["--format=pax", "-S", "--sparse-version=0.1"],
    ["--format=pax", "-S", "--sparse-version=1.0"],
  ];
  for (const options of formats) {
    it(`of ${options.join(" ")}`, () => {
      const directory = mkdtempSync(join(tmpdir(), "lazarus-tar-"));
      try {
        const long = options[0] === "--format=v7" ? "n" : `${"long/".repeat(8)}${"n".repeat(90)}`;
        const sparse = options.includes("-S");
        mkdirSync(join(directory, "tree", "long/".repeat(8)), { recursive: true });
        writeFileSync(join(directory, "tree", long), "x".repeat(700));
        if (options[0] !== "--format=v7")
          symlinkSync("t".repeat(sparse ? 140 : 90), join(directory, "tree", "s"));
        if (sparse) {
          const fd = openSync(join(directory, "tree", "holes"), "w");
          // Six extents: more than the four that fit into an old GNU header; the file ends in a hole.
          for (let i = 0; i < 30; i += 1) writeSync(fd, `island ${i}`, i * 1_000_000);
          ftruncateSync(fd, 40_000_000);
          closeSync(fd);
        }
        const archive = execFileSync("tar", ["-C", join(directory, "tree"), ...options, "-cf", "-", "."], {
          maxBuffer: 1 << 28,
        });
        const found = new Map(readAll(archive).map((entry) => [entry.path.replace(/^\.\//, ""), entry]));
        expect(found.get(long)?.data).toBe("x".repeat(700));
        if (!sparse) return;
        expect(found.get("s")?.target).toBe("t".repeat(140));
        const holes = found.get("holes")!;
        expect(holes.size).toBe(40_000_000);
        expect(holes.extents).toHaveLength(30);
        expect(holes.extents?.[3]?.[0]).toBeLessThanOrEqual(3_000_000);
        expect(holes.data).toContain("island 29");
        expect(archive.length).toBeLessThan(2_000_000);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
  }
});

function withPax(body: Buffer): Buffer {
  const archive = member({ ...plain, mtimeNs: 1 });
  const bytes = Buffer.concat([
    archive.subarray(0, 512),
    body,
    Buffer.alloc(padding(body.length)),
    archive.subarray(1024),
  ]);
  bytes.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  fixChecksum(bytes, 0);
  return bytes;
}

function huge(flag: string): Buffer {
  const bytes = Buffer.from(member(plain).subarray(0, 512));
  bytes.write(flag, 156, "latin1");
  bytes.write("40000000000\0", 124, "latin1");
  fixChecksum(bytes, 0);
  return bytes;
}

function fixChecksum(bytes: Buffer, at: number): void {
  const block = bytes.subarray(at, at + 512);
  if (block.length < 512 || block.toString("latin1", 257, 262) !== "ustar") return;
  block.fill(0x20, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
}

describe("names that look like whiteouts", () => {
  it("are escaped uniquely and decoded exactly", () => {
    const part = fc.constantFrom(".wh.", ".lazarus", ".wh..opq", "a", ".", "wh.");
    const name = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(tarPath(a).startsWith(".wh.")).toBe(false);
        expect(fromTarName(tarPath(a))).toBe(a);
        expect(tarPath(a) === tarPath(b)).toBe(a === b);
      }),
    );
  });
});
