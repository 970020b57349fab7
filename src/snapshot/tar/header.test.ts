// Headers are read by Python's tarfile, which shares no code with Lazarus.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Entry } from "../model/entry.ts";
import { encodePath } from "../model/path-bytes.ts";
import { BLOCK, encodeHeader, encodeSparseMap, encodeWhiteout, padding } from "./header.ts";

/** Preferably the system's Python: shims of version managers take a second to start. */
const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
const READ = `
import io, json, sys, tarfile
def hex(text): return text.encode("utf-8", "surrogateescape").hex()
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
    for m in tar:
        data = tar.extractfile(m).read().hex() if m.isreg() else None
        print(json.dumps({"name": hex(m.name), "link": hex(m.linkname), "type": m.type.decode("latin1"), "mode": m.mode,
          "uid": m.uid, "gid": m.gid, "mtime": m.pax_headers.get("mtime", str(int(m.mtime))), "size": m.size, "data": data,
          "xattrs": {k[13:]: hex(v) for k, v in m.pax_headers.items() if k.startswith("SCHILY.xattr.")}}))
`;

function readWithPython(tar: Buffer): Record<string, unknown>[] {
  const bytes = Buffer.concat([tar, Buffer.alloc(BLOCK * 2)]);
  const out = execFileSync(PYTHON, ["-c", READ], { input: bytes, encoding: "utf8" });
  return out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const hex = (path: string) => encodePath(path).toString("hex");

function entry(given: Partial<Entry>): Entry {
  return {
    path: "x",
    type: "file",
    mode: 0o644,
    uid: 1,
    gid: 2,
    mtimeSec: 1_700_000_000,
    mtimeNs: 0,
    size: 0,
    sha256: "",
    ...given,
  };
}

describe("a header is read by Python's tarfile", () => {
  const names = [
    "plain",
    "a/b c",
    "new\nline",
    "ünï/日本",
    "\udcff\udc80raw",
    "n".repeat(250),
    `${"d/".repeat(120)}deep`,
    "q".repeat(100),
    "q".repeat(101),
    "-rf",
  ];
  it("with every kind of name, as path and as target of links", () => {
    const tar = Buffer.concat(
      names.flatMap((path) => [
        encodeHeader(entry({ path }), { storedSize: 0 }),
        encodeHeader(entry({ path: "s", type: "symlink", target: path }), { storedSize: 0 }),
        encodeHeader(entry({ path: "h" }), { storedSize: 0, linkTo: path }),
      ]),
    );
    expect(readWithPython(tar).map(({ name, link, type }) => [type, name, link])).toEqual(
      names.flatMap((path) => [
        ["0", hex(path), ""],
        ["2", hex("s"), hex(path)],
        ["1", hex("h"), hex(path)],
      ]),
    );
  });

  it("with times before 1970, beyond 2242 and in nanoseconds", () => {
    const times: [number, number, string][] = [
      [0, 0, "0"],
      [1_700_000_000, 0, "1700000000"],
      [1_700_000_000, 1, "1700000000.000000001"],
      [-1, 0, "-1"],
      [-2, 750_000_000, "-1.250000000"],
      [-1, 750_000_000, "-0.250000000"],
      [0o77777777777, 0, "8589934591"],
      [0o77777777777 + 1, 5, "8589934592.000000005"],
    ];
    const headers = times.map(([mtimeSec, mtimeNs]) =>
      encodeHeader(entry({ mtimeSec, mtimeNs }), { storedSize: 0 }),
    );
    expect(readWithPython(Buffer.concat(headers)).map(({ mtime }) => mtime)).toEqual(
      times.map(([, , text]) => text),
    );
  });

  it("with modes, owners of any size, types and attributes", () => {
    const xattrs = [
      ["user.a", Buffer.from("value").toString("base64")],
      ["user.empty", ""],
    ] as const;
    const tar = Buffer.concat([
      encodeHeader(entry({ mode: 0o7777, uid: 0o7777777, gid: 0o7777777 + 1 }), { storedSize: 0 }),
      encodeHeader(entry({ path: "d", type: "directory", mode: 0 }), { storedSize: 0 }),
      encodeHeader(entry({ path: "p", type: "fifo", xattrs }), { storedSize: 0 }),
    ]);
    const [file, directory, fifo] = readWithPython(tar);
    expect(file).toMatchObject({ mode: 0o7777, uid: 0o7777777, gid: 0o7777777 + 1 });
    expect(directory).toMatchObject({ type: "5", mode: 0, name: hex("d") });
    expect(fifo).toMatchObject({ type: "6", xattrs: { "user.a": hex("value"), "user.empty": "" } });
  });

  it.each([
    [
      "data at both ends",
      3000,
      [
        [0, 10],
        [2990, 10],
      ],
      "ab",
    ],
    ["a hole at the end", 3000, [[5, 10]], "a"],
    ["nothing but a hole", 3000, [], ""],
  ] as const)("with %s", (_, size, extents, letters) => {
    const stored = Buffer.concat([...letters].map((letter) => Buffer.alloc(10, letter)));
    const map = encodeSparseMap(extents, size);
    const header = encodeHeader(entry({ size, extents }), { storedSize: stored.length + map.length });
    const tar = Buffer.concat([header, map, stored, Buffer.alloc(padding(stored.length))]);
    const whole = Buffer.alloc(size);
    for (const [i, [offset, length]] of extents.entries()) whole.fill(letters[i]!, offset, offset + length);
    expect(readWithPython(tar)).toMatchObject([{ name: hex("x"), size, data: whole.toString("hex") }]);
  });

  it("when the length of a record grows by its own digits", () => {
    const paths = Array.from({ length: 60 }, (_, i) => "é".repeat(20 + i));
    const headers = paths.map((path) => encodeHeader(entry({ path }), { storedSize: 0 }));
    expect(readWithPython(Buffer.concat(headers)).map(({ name }) => name)).toEqual(paths.map(hex));
  });
});

describe("a whiteout", () => {
  it("is next to the name it removes, and names that look like whiteouts are escaped at every depth", () => {
    const tar = Buffer.concat(["a/b", "top", ".wh.dir/.wh.file", "\udcff"].map(encodeWhiteout));
    const escaped = (name: string) =>
      readWithPython(encodeHeader(entry({ path: name }), { storedSize: 0 }))[0]!.name;
    const below = `${Buffer.from(String(escaped(".wh.dir")), "hex")}/.wh.${Buffer.from(String(escaped(".wh.file")), "hex")}`;
    expect(readWithPython(tar).map(({ name }) => name)).toEqual([
      hex("a/.wh.b"),
      hex(".wh.top"),
      hex(below),
      hex(".wh.\udcff"),
    ]);
  });
});
