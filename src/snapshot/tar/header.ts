// Writes tar entry headers: ustar where it suffices, PAX records for what it cannot say (long or non-ASCII names,
// nanoseconds, big numbers, xattrs, holes). Pure: entry in, bytes out.
import type { Entry } from "../entry.ts";
import { encodePath } from "../path-bytes.ts";

export const BLOCK = 512;

export const TYPE_FLAGS = {
  file: "0",
  link: "1",
  symlink: "2",
  directory: "5",
  fifo: "6",
  pax: "x",
  global: "g",
} as const;

/** OCI reads a name with this prefix as "delete": real files with such names travel under an escape. */
export const WHITEOUT_PREFIX = ".wh.";
export const ESCAPED_WHITEOUT_PREFIX = ".lazarus.wh.";

const MAX_OCTAL_8 = 0o7777777;
const MAX_OCTAL_12 = 0o77777777777;

export function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

export interface HeaderOptions {
  /** Path of the first member of the group, when this entry is a further hard link. */
  readonly linkTo?: string;
  /** Bytes that follow the header; 0 for anything but a file with content. */
  readonly storedSize: number;
  /** For a plain archive, which knows no whiteouts: names beginning with `.wh.` stand for themselves. */
  readonly plainNames?: boolean;
}

/** The header of one entry, PAX part included. */
export function encodeHeader(entry: Entry, options: HeaderOptions): Buffer {
  const records: [string, Buffer][] = [];
  const spell = options.plainNames ? (path: string) => path : tarPath;
  const name = tarName(entry.path, entry.type === "directory", spell);
  const link =
    entry.type === "symlink"
      ? encodePath(entry.target ?? "")
      : encodePath(options.linkTo ? spell(options.linkTo) : "");
  const note = (key: string, value: string | Buffer) => records.push([key, Buffer.from(value)]);
  const sparse = entry.extents !== undefined && options.linkTo === undefined;
  if (sparse) {
    note("GNU.sparse.major", "1");
    note("GNU.sparse.minor", "0");
    note("GNU.sparse.name", name);
    note("GNU.sparse.realsize", String(entry.size));
  }
  if (name.length > 100 || !isAscii(name)) note("path", name);
  if (link.length > 100 || !isAscii(link)) note("linkpath", link);
  if (entry.mtimeNs !== 0 || entry.mtimeSec < 0 || entry.mtimeSec > MAX_OCTAL_12)
    note("mtime", paxTime(entry));
  if (options.storedSize > MAX_OCTAL_12) note("size", String(options.storedSize));
  if (entry.uid > MAX_OCTAL_8) note("uid", String(entry.uid));
  if (entry.gid > MAX_OCTAL_8) note("gid", String(entry.gid));
  for (const [key, value] of entry.xattrs ?? []) note(`SCHILY.xattr.${key}`, Buffer.from(value, "base64"));
  const flag = options.linkTo !== undefined ? TYPE_FLAGS.link : TYPE_FLAGS[entry.type];
  const main = ustar(name, link, flag, entry, options.storedSize);
  if (records.length === 0) return main;
  const body = Buffer.concat(records.map(([key, value]) => paxRecord(key, value)));
  const head = ustar(
    Buffer.from("PaxHeaders/entry"),
    Buffer.alloc(0),
    TYPE_FLAGS.pax,
    PAX_OWNER,
    body.length,
  );
  return Buffer.concat([head, body, Buffer.alloc(padding(body.length)), main]);
}

/** A whiteout: the OCI way to say that `path` of a lower layer is gone. */
export function encodeWhiteout(path: string): Buffer {
  const slash = path.lastIndexOf("/");
  const name = `${path.slice(0, slash + 1)}${WHITEOUT_PREFIX}${tarPath(path.slice(slash + 1))}`;
  const entry: Entry = { ...PAX_OWNER, path: name, type: "file" };
  return encodeRaw(entry);
}

/**
 * The map that stands before the data of a sparse file (GNU format 1.0), padded to a block. A hole at the end is closed
 * by an empty extent, as GNU tar does: without it `tar x` would cut the file after its last byte of data.
 */
export function encodeSparseMap(extents: NonNullable<Entry["extents"]>, size: number): Buffer {
  const last = extents.at(-1);
  const closed =
    last !== undefined && last[0] + last[1] === size ? extents : [...extents, [size, 0] as const];
  const lines = [closed.length, ...closed.flat()].map((number) => `${number}\n`).join("");
  return Buffer.concat([Buffer.from(lines), Buffer.alloc(padding(lines.length))]);
}

/** A note at the head of an archive that every reader skips. */
export function encodeGlobalComment(text: string): Buffer {
  const body = paxRecord("comment", Buffer.from(text));
  const head = ustar(
    Buffer.from("PaxHeaders/global"),
    Buffer.alloc(0),
    TYPE_FLAGS.global,
    PAX_OWNER,
    body.length,
  );
  return Buffer.concat([head, body, Buffer.alloc(padding(body.length))]);
}

/** The path as it stands in a layer: whiteout look-alikes escaped in every component. */
export function tarPath(path: string): string {
  if (!path.includes(WHITEOUT_PREFIX)) return path;
  return path
    .split("/")
    .map((name) =>
      name.startsWith(WHITEOUT_PREFIX) ? ESCAPED_WHITEOUT_PREFIX + name.slice(WHITEOUT_PREFIX.length) : name,
    )
    .join("/");
}

const PAX_OWNER: Entry = {
  path: "",
  type: "file",
  mode: 0o600,
  uid: 0,
  gid: 0,
  mtimeSec: 0,
  mtimeNs: 0,
  size: 0,
  sha256: "",
};

function encodeRaw(entry: Entry): Buffer {
  const name = encodePath(entry.path);
  const main = ustar(name, Buffer.alloc(0), TYPE_FLAGS.file, entry, 0);
  if (name.length <= 100 && isAscii(name)) return main;
  const body = paxRecord("path", name);
  const head = ustar(
    Buffer.from("PaxHeaders/entry"),
    Buffer.alloc(0),
    TYPE_FLAGS.pax,
    PAX_OWNER,
    body.length,
  );
  return Buffer.concat([head, body, Buffer.alloc(padding(body.length)), main]);
}

function tarName(path: string, isDirectory: boolean, spell: (path: string) => string): Buffer {
  if (path === ".") return Buffer.from("./");
  return encodePath(isDirectory ? `${spell(path)}/` : spell(path));
}

function ustar(name: Buffer, link: Buffer, flag: string, entry: Entry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  name.copy(block, 0, 0, 100);
  octal(block, 100, 8, entry.mode);
  octal(block, 108, 8, entry.uid > MAX_OCTAL_8 ? 0 : entry.uid);
  octal(block, 116, 8, entry.gid > MAX_OCTAL_8 ? 0 : entry.gid);
  octal(block, 124, 12, size > MAX_OCTAL_12 ? 0 : size);
  octal(block, 136, 12, entry.mtimeSec < 0 || entry.mtimeSec > MAX_OCTAL_12 ? 0 : entry.mtimeSec);
  block.fill(0x20, 148, 156);
  block.write(flag, 156, "latin1");
  link.copy(block, 157, 0, 100);
  block.write("ustar\u000000", 257, "latin1");
  octal(block, 329, 8, 0);
  octal(block, 337, 8, 0);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function octal(block: Buffer, at: number, width: number, value: number): void {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "latin1");
}

function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.byteLength(key) + value.length + 3;
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from("\n")]);
}

function paxTime(entry: Entry): string {
  // -1.25 s is -2 s + 0.75 s inside, and "-1.25" in PAX.
  const negative = entry.mtimeSec < 0 && entry.mtimeNs > 0;
  const seconds = negative ? entry.mtimeSec + 1 : entry.mtimeSec;
  const nanos = negative ? 1_000_000_000 - entry.mtimeNs : entry.mtimeNs;
  const sign = negative && seconds === 0 ? "-" : "";
  return `${sign}${seconds}${nanos === 0 ? "" : `.${String(nanos).padStart(9, "0")}`}`;
}

function isAscii(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x7e || byte < 0x20) return false;
  return true;
}
