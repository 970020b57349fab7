// Malicious archives: each is refused or contained, nothing is written outside the cell, and a refusal leaves no cell, no
// checkpoint and no temporary files.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LazarusError } from "../../src/platform/errors.ts";
import type { MissionContext } from "../../src/snapshot/mission-context.ts";
import type { Entry } from "../../src/snapshot/model/entry.ts";
import { encodePath } from "../../src/snapshot/model/path-bytes.ts";
import { type ImportOptions, importCell } from "../../src/snapshot/operations/import.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { encodeHeader, encodeSparseMap, padding } from "../../src/snapshot/tar/header.ts";
import { isRoot } from "../plain-user.ts";
import { type Draft, draftEntry, fixtureContext, seededMachine } from "./hand-made.ts";
import { removeTree } from "./lab.ts";

let home: string;
let outside: string;
let context: MissionContext;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-hostile-"));
  outside = join(home, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "precious"), "do not touch");
  context = fixtureContext(seededMachine(), join(home, "lazarus"));
});

afterEach(() => removeTree(home));

const END = Buffer.alloc(1024);

function tarMember(draft: Draft): Buffer {
  const entry = draftEntry(draft) as Entry;
  const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
  const content = Buffer.from(draft.content ?? "", "latin1");
  const storedSize = draft.linkTo === undefined ? map.length + content.length : 0;
  const link = draft.linkTo === undefined ? {} : { linkTo: draft.linkTo };
  const header = encodeHeader(entry, { storedSize, plainNames: true, ...link });
  return storedSize === 0 ? header : Buffer.concat([header, map, content, Buffer.alloc(padding(storedSize))]);
}

/** A member of a type that Lazarus never writes. */
function ofType(draft: Draft, flag: string): Buffer {
  const bytes = tarMember({ ...draft, mtimeNs: 0 });
  bytes.write(flag, 156, "latin1");
  bytes.fill(0x20, 148, 156);
  const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

/** PAX records, of any bytes, for the entry that follows. */
function withPax(records: Record<string, string>): Buffer {
  const body = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = rest.length + 1;
    while (`${length}`.length + rest.length !== length) length += 1;
    return `${length}${rest}`;
  });
  return ofType({ path: "PaxHeaders/x", content: body.join("") }, "x");
}

/** An entry without its own PAX records. */
const PLAIN: Draft = { path: "x", mtimeNs: 0 };

function archive(...members: (Draft | Buffer)[]): string {
  const file = join(home, "archive.tar.gz");
  const bytes = members.map((member) => (Buffer.isBuffer(member) ? member : tarMember(member)));
  writeFileSync(file, gzipSync(Buffer.concat([...bytes, END]), { level: 1 }));
  return file;
}

const importArchive = (source: string, options: Partial<ImportOptions> = {}) =>
  importCell(context, { source, owners: isRoot, ...options });

async function refused(source: string, options: Partial<ImportOptions> = {}): Promise<LazarusError> {
  const error = await importArchive(source, options).then(
    () => expect.unreachable("the import succeeded"),
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(LazarusError);
  expect(["LAYER_HOSTILE", "LAYER_DAMAGED"], error.message).toContain(error.code);
  expect(existsSync(context.cellRoot)).toBe(false);
  expect(readdirSync(context.config.missions_root)).toEqual([]);
  expect(context.vault.list()).toEqual([]);
  expect(context.vault.blobs()).toEqual([]);
  return error;
}

afterEach(() => {
  expect(readFileSync(join(outside, "precious"), "utf8")).toBe("do not touch");
  expect(readdirSync(outside)).toEqual(["precious"]);
  for (const name of ["escaped", "evil"]) expect(existsSync(join(home, name))).toBe(false);
});

describe("an import refuses", () => {
  const escapes: [string, () => (Draft | Buffer)[]][] = [
    ["..", () => [{ path: "../escaped", content: "x" }]],
    [".. in the middle", () => [{ path: "a/../../../escaped", content: "x" }]],
    [".. that stays inside", () => [{ path: "a/../b", content: "x" }]],
    ["an absolute name", () => [{ path: join(outside, "evil"), content: "x" }]],
    ["a name that is only slashes", () => [{ path: "///", content: "x" }]],
    ["a directory above", () => [{ path: "..", type: "directory" }]],
    [
      "a file written through a symbolic link",
      () => [
        { path: "link", type: "symlink", target: outside },
        { path: "link/evil", content: "x" },
      ],
    ],
    [
      "a file written through a relative link",
      () => [
        { path: "d", type: "directory" },
        { path: "d/link", type: "symlink", target: "../../../outside" },
        { path: "d/link/evil", content: "x" },
      ],
    ],
    [
      "a directory made through a link",
      () => [
        { path: "link", type: "symlink", target: outside },
        { path: "link/evil", type: "directory" },
      ],
    ],
    [
      "a directory replaced by a link, then written into",
      () => [
        { path: "d", type: "directory" },
        { path: "d/f", content: "1" },
        { path: "d", type: "symlink", target: outside },
        { path: "d/evil", content: "x" },
      ],
    ],
    ["a hard link to a file outside", () => [{ path: "h", linkTo: "../../outside/precious" }]],
    ["a hard link to an absolute path", () => [{ path: "h", linkTo: join(outside, "precious") }]],
    [
      "a hard link through a symbolic link",
      () => [
        { path: "link", type: "symlink", target: outside },
        { path: "h", linkTo: "link/precious" },
      ],
    ],
    ["a hard link to a missing file", () => [{ path: "h", linkTo: "nowhere" }]],
    [
      "a hard link to a directory",
      () => [
        { path: "d", type: "directory" },
        { path: "h", linkTo: "d" },
      ],
    ],
    ["a symbolic link as the root", () => [{ path: ".", type: "symlink", target: outside }]],
    ["a name longer than any file system allows", () => [{ path: "n".repeat(300), content: "x" }]],
    [
      "a sparse file of four exabytes",
      () => [{ path: "big", content: "ab", size: 2 ** 52, extents: [[0, 2]] }],
    ],
    [
      "a cell whose meta is a link",
      () => [
        { path: "meta", type: "symlink", target: outside },
        { path: "meta/mission.json", content: "{}" },
      ],
    ],
    ["a PAX name with a NUL byte", () => [withPax({ path: "a\0b" }), PLAIN]],
    ["a PAX uid beyond 32 bits", () => [withPax({ uid: "4294967296" }), PLAIN]],
    ["a PAX gid that means no group", () => [withPax({ gid: "4294967295" }), PLAIN]],
    ["an attribute name with a NUL byte", () => [withPax({ "SCHILY.xattr.user.a\0b": "1" }), PLAIN]],
    [
      "a link target with a NUL byte",
      () => [withPax({ linkpath: "a\0b" }), { ...PLAIN, type: "symlink", target: "y" }],
    ],
    ["an empty archive", () => []],
    ["a file that is not a tar archive", () => [Buffer.from("This is not a tar archive. ".repeat(100))]],
  ];
  for (const [what, members] of escapes) {
    it(what, async () => {
      if (what === "a sparse file of four exabytes") {
        // Some file systems allow such a file; then it is imported and takes no space.
        await importArchive(archive(...members())).catch((error) => expect(error.code).toBe("LAYER_HOSTILE"));
        return;
      }
      await refused(archive(...members()));
    });
  }

  it("a cell whose config directory is a symlink, before anything is written through it", async () => {
    const cell: Draft[] = [
      { path: "meta", type: "directory" },
      { path: "meta/mission.json", content: '{"mission_id":"old"}' },
      { path: "config", type: "symlink", target: outside },
    ];
    await refused(archive(...cell));
  });

  it("a gzip bomb, while it inflates", async () => {
    const megabyte = gzipSync(Buffer.alloc(1 << 20), { level: 9 });
    const head = gzipSync(
      encodeHeader(draftEntry({ path: "bomb", size: 8 * 2 ** 30 }) as Entry, { storedSize: 8 * 2 ** 30 }),
    );
    const file = join(home, "bomb.tar.gz");
    writeFileSync(file, Buffer.concat([head, ...Array.from({ length: 8192 }, () => megabyte)]));
    expect(statSync(file).size).toBeLessThan(10 << 20);
    const error = await refused(file);
    expect(error.message).toMatch(/inflates to \d+ times its size/);
    expect(error.hint).toContain("decompress it first");
    expect((await refused(file, { limits: { maxRatio: 0, maxBytes: 1 << 26 } })).message).toContain(
      "more than 67108864 bytes",
    );
  });

  it("ten million entries", async () => {
    const headers = Buffer.concat(
      Array.from({ length: 2000 }, (_, i) => tarMember({ path: `f${i}`, mtimeNs: 0 })),
    );
    const group = gzipSync(headers, { level: 9 });
    const file = join(home, "many.tar.gz");
    writeFileSync(file, Buffer.concat(Array.from({ length: 5000 }, () => group)));
    // The default is two million; smaller here, because every entry before the limit is created.
    expect((await refused(file, { limits: { maxRatio: 0, maxEntries: 5000 } })).message).toContain(
      "more than 5000 entries",
    );
  });

  it("a FIFO, instead of blocking on it with the lock held", async () => {
    const fifo = join(home, "fifo");
    execFileSync("mkfifo", [fifo]);
    const error = await importCell(context, { source: fifo, owners: false }).catch((each) => each);
    expect(error).toMatchObject({ code: "USAGE", hint: expect.stringContaining(`cat ${fifo} >`) });
    expect(existsSync(context.vault.root)).toBe(false);
  });

  it.each([
    ["archive.tar.bz2", "425a6839314159265359", "a bzip2", "bzip2 -dc"],
    ["archive.tar.xz", "fd377a585a000004e6d6b446", "an xz", "xz -dc"],
    ["it's.zip", "504b0304140000000800", "a zip", "unzip -q"],
    ["archive.7z", "377abcaf271c0004", "a 7-Zip", "7z x"],
  ])("%s, and says how to convert it", async (name, magic, what, command) => {
    const file = join(home, name);
    writeFileSync(file, Buffer.concat([Buffer.from(magic, "hex"), Buffer.alloc(2000, 7)]));
    const error = await importArchive(file).catch((each) => each);
    expect(error).toMatchObject({ code: "ARCHIVE_UNSUPPORTED", kind: "unsupported" });
    expect(error.message).toContain(`is ${what} archive`);
    expect(error.hint).toContain(command);
    expect(error.hint).toContain("lazarus import");
    expect(existsSync(context.cellRoot)).toBe(false);
  });

  it("an archive that is truncated, or whose gzip is damaged", async () => {
    const file = archive({ path: "a", content: "x".repeat(5000) }, { path: "b", content: "y".repeat(5000) });
    const whole = readFileSync(file);
    writeFileSync(file, whole.subarray(0, whole.length >> 1));
    await refused(file);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 6]! ^= 1;
    writeFileSync(file, flipped);
    await refused(file);
  });
});

describe("an import", () => {
  const worktree = (...parts: string[]) => join(context.cellRoot, "worktree", ...parts);

  it("skips devices and lists them as flaws", async () => {
    const { lost } = await importArchive(
      archive({ path: "ok", content: "1" }, ofType({ path: "disk" }, "4"), ofType({ path: "tty" }, "3")),
    );
    expect(lost).toEqual([
      { path: "disk", kind: "skipped", reason: "a device" },
      { path: "tty", kind: "skipped", reason: "a device" },
    ]);
    expect(readdirSync(worktree())).toEqual(["ok"]);
  });

  it("keeps symlinks that point outside and never follows them", async () => {
    await importArchive(
      archive(
        { path: "link", type: "symlink", target: outside },
        { path: "up", type: "symlink", target: "../../../.." },
      ),
    );
    expect(lstatSync(worktree("link")).isSymbolicLink()).toBe(true);
  });

  it("keeps the last of duplicate names", async () => {
    await importArchive(
      archive(
        { path: "a", content: "first" },
        { path: "a", content: "second" },
        { path: "b", type: "directory" },
        { path: "b/c", content: "below" },
        { path: "b", content: "a file now" },
        { path: "s", type: "symlink", target: join(outside, "precious") },
        { path: "s", content: "written to the name, not through it" },
      ),
    );
    expect(readFileSync(worktree("a"), "utf8")).toBe("second");
    expect(readFileSync(worktree("b"), "utf8")).toBe("a file now");
    expect(readFileSync(worktree("s"), "utf8")).toBe("written to the name, not through it");
  });

  it("keeps names that are not UTF-8", async () => {
    await importArchive(
      archive({ path: "caf\udce9/\udcff", content: "1" }, { path: "\u001b[31mred\nname", content: "2" }),
    );
    const names = readdirSync(worktree(), { encoding: "buffer" }).map((name) => name.toString("latin1"));
    expect(names.sort()).toEqual(["\u001b[31mred\nname", "caf\u00e9"]);
    expect(
      readFileSync(
        Buffer.concat([encodePath(worktree("caf\udce9")), Buffer.from("/\xff", "latin1")]),
        "utf8",
      ),
    ).toBe("1");
  });

  it("drops setuid bits and privileged attributes unless trusted", async () => {
    const drafts: Draft[] = [
      { path: "tool", content: "1", mode: 0o4755, xattrs: [["security.capability", "AQAAAg=="]] },
    ];
    const { lost } = await importArchive(archive(...drafts));
    expect(statSync(worktree("tool")).mode & 0o7777).toBe(0o755);
    expect(lost.map(({ kind, path }) => [kind, path])).toEqual([
      ["degraded", "tool"],
      ["degraded", "tool"],
    ]);
    const again = fixtureContext(seededMachine(2), join(home, "lazarus"), "mine");
    await importCell(again, {
      source: archive({ path: "tool", content: "1", mode: 0o4755 }),
      owners: false,
      trusted: true,
    });
    expect(statSync(join(again.cellRoot, "worktree", "tool")).mode & 0o7777).toBe(0o4755);
  });

  it("does not run git in a repository whose config names programs", async () => {
    const trap = join(home, "evil");
    await importArchive(
      archive(
        { path: ".git", type: "directory" },
        { path: ".git/HEAD", content: "ref: refs/heads/main\n" },
        { path: ".git/objects", type: "directory" },
        { path: ".git/refs", type: "directory" },
        {
          path: ".git/config",
          content: `[core]\n\trepositoryformatversion = 0\n[filter "x"]\n\tclean = touch ${trap}\n`,
        },
        { path: ".gitattributes", content: "* filter=x\n" },
        { path: "file", content: "x" },
      ),
    );
    expect(existsSync(trap)).toBe(false);
  });

  it("leaves a vault that verifies, with one checkpoint of reason import", async () => {
    const { ref } = await importArchive(
      archive({ path: "d", type: "directory", mode: 0o000 }, { path: "d/f", content: "1" }),
    );
    expect(context.vault.list()).toMatchObject([{ id: ref.id, reason: "import" }]);
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
    expect(readdirSync(context.config.missions_root)).toEqual(["m"]);
  });

  it("accepts an archive whose top directory its owner may not enter", async () => {
    const { as, lost } = await importArchive(
      archive({ path: ".", type: "directory", mode: 0o000 }, { path: "-f", content: "1" }),
    );
    expect({ as, lost }).toEqual({ as: "worktree", lost: [] });
    expect(statSync(worktree(".")).mode & 0o777).toBe(0);
    chmodSync(worktree("."), 0o700);
    expect(readFileSync(worktree("-f"), "utf8")).toBe("1");
  });

  it("accepts a cell of read-only directories that it must write to", async () => {
    const { as, lost } = await importArchive(
      archive(
        { path: "c", type: "directory", mode: 0o555 },
        { path: "c/meta", type: "directory", mode: 0o555 },
        { path: "c/meta/mission.json", content: '{"mission_id": "old"}', mode: 0o444 },
        { path: "c/worktree", type: "directory", mode: 0o555 },
        { path: "c/worktree/f", content: "1", mode: 0o444 },
      ),
    );
    const mode = (path: string) => statSync(join(context.cellRoot, path)).mode & 0o777;
    expect(as).toBe("cell");
    expect(JSON.parse(readFileSync(join(context.cellRoot, "meta/mission.json"), "utf8")).mission_id).toBe(
      "m",
    );
    expect([mode("meta"), mode("worktree"), mode("meta/mission.json")]).toEqual([0o555, 0o555, 0o444]);
    const reason = "its mode 0555 would lock out its owner; u+rwx was added";
    expect(mode(".")).toBe(isRoot ? 0o555 : 0o755);
    expect(lost).toEqual(isRoot ? [] : [{ path: ".", kind: "degraded", reason }]);
  });

  it("refuses an existing mission and leaves it unchanged", async () => {
    await importArchive(archive({ path: "f", content: "1" }));
    await expect(importArchive(archive({ path: "f", content: "2" }))).rejects.toMatchObject({
      code: "TARGET_NOT_EMPTY",
    });
    expect(readFileSync(worktree("f"), "utf8")).toBe("1");
  });
});
