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
const ESCAPE = ".lazarus";
/** A name that is a whiteout to others, or is one of our escapes: both get one more escape, so that the way back is exact. */
const NEEDS_ESCAPE = /^(?:\.lazarus)*\.wh\./;
const IS_ESCAPED = /^(?:\.lazarus)+\.wh\./;

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
  const records: (string | Buffer)[] = [];
  const spell = options.plainNames ? (path: string) => path : tarPath;
  const name = tarName(entry.path, entry.type === "directory", spell);
  const link =
    entry.type === "symlink"
      ? encodePath(entry.target ?? "")
      : encodePath(options.linkTo ? spell(options.linkTo) : "");
  const note = (key: string, value: string | Buffer) => records.push(paxRecord(key, value));
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
  return assemble(records, name, link, flag, entry, options.storedSize);
}

/** A whiteout: the OCI way to say that `path` of a lower layer is gone. */
export function encodeWhiteout(path: string): Buffer {
  const slash = path.lastIndexOf("/");
  const name = `${tarPath(path.slice(0, slash + 1))}${WHITEOUT_PREFIX}${tarPath(path.slice(slash + 1))}`;
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
  const body = Buffer.from(paxRecord("comment", Buffer.from(text)));
  const bytes = Buffer.alloc(BLOCK + body.length + padding(body.length));
  ustar(bytes, 0, Buffer.from("PaxHeaders/global"), NOTHING, TYPE_FLAGS.global, PAX_OWNER, body.length);
  body.copy(bytes, BLOCK);
  return bytes;
}

/** The path as it stands in a layer: whiteout look-alikes escaped in every component. */
export function tarPath(path: string): string {
  if (!path.includes(WHITEOUT_PREFIX)) return path;
  return path
    .split("/")
    .map((name) => (NEEDS_ESCAPE.test(name) ? ESCAPE + name : name))
    .join("/");
}

/** The way back, for one name. */
export function fromTarName(name: string): string {
  return IS_ESCAPED.test(name) ? name.slice(ESCAPE.length) : name;
}

const NOTHING = Buffer.alloc(0);
const PAX_NAME = Buffer.from("PaxHeaders/entry");
/** Magic, version, no owner's names, device numbers of zero: the same in every header. */
const MAGIC = `ustar\u000000${"\0".repeat(64)}0000000\u00000000000\0`;
const MAGIC_SUM = Buffer.from(MAGIC, "latin1").reduce((sum, byte) => sum + byte, 0);
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
  const records = name.length <= 100 && isAscii(name) ? [] : [paxRecord("path", name)];
  return assemble(records, name, NOTHING, TYPE_FLAGS.file, entry, 0);
}

/** The PAX part, where there is one, and the header, in one buffer from the pool. */
function assemble(
  records: readonly (string | Buffer)[],
  name: Buffer,
  link: Buffer,
  flag: string,
  entry: Entry,
  storedSize: number,
): Buffer {
  let length = 0;
  for (const record of records) length += record.length;
  const before = length === 0 ? 0 : BLOCK + length + padding(length);
  const bytes = Buffer.allocUnsafe(before + BLOCK).fill(0);
  if (length > 0) {
    paxHead(length).copy(bytes);
    let at = BLOCK;
    for (const record of records) {
      if (typeof record === "string") bytes.write(record, at, "latin1");
      else record.copy(bytes, at);
      at += record.length;
    }
  }
  ustar(bytes, before, name, link, flag, entry, storedSize);
  return bytes;
}

const paxHeads = new Map<number, Buffer>();

/** The header of a PAX part differs only in its length, and almost always that is one of two. */
function paxHead(length: number): Buffer {
  let head = paxHeads.get(length);
  if (head === undefined) {
    head = Buffer.alloc(BLOCK);
    ustar(head, 0, PAX_NAME, NOTHING, TYPE_FLAGS.pax, PAX_OWNER, length);
    if (length < BLOCK) paxHeads.set(length, head);
  }
  return head;
}

function tarName(path: string, isDirectory: boolean, spell: (path: string) => string): Buffer {
  if (path === ".") return Buffer.from("./");
  return encodePath(isDirectory ? `${spell(path)}/` : spell(path));
}

/** Writes a header into a block of zeros. */
function ustar(
  block: Buffer,
  at: number,
  name: Buffer,
  link: Buffer,
  flag: string,
  entry: Entry,
  size: number,
): void {
  const numbers =
    octal(8, entry.mode) +
    octal(8, entry.uid > MAX_OCTAL_8 ? 0 : entry.uid) +
    octal(8, entry.gid > MAX_OCTAL_8 ? 0 : entry.gid) +
    octal(12, size > MAX_OCTAL_12 ? 0 : size) +
    octal(12, entry.mtimeSec < 0 || entry.mtimeSec > MAX_OCTAL_12 ? 0 : entry.mtimeSec);
  name.copy(block, at, 0, 100);
  block.write(`${numbers}        ${flag}`, at + 100, "latin1");
  link.copy(block, at + 157, 0, 100);
  block.write(MAGIC, at + 257, "latin1");
  let sum = MAGIC_SUM;
  for (let i = at; i < at + 257; i += 1) sum += block[i]!;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148, "latin1");
}

function octal(width: number, value: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** Text stays text where it is ASCII, which keys and numbers are. */
function paxRecord(key: string, value: string | Buffer): string | Buffer {
  if (typeof value === "string") return `${paxLength(key.length, value.length)} ${key}=${value}\n`;
  const head = Buffer.from(key);
  const length = paxLength(head.length, value.length);
  return Buffer.concat([Buffer.from(`${length} `), head, Buffer.from("="), value, Buffer.from("\n")]);
}

/** The length of a record counts its own digits. */
function paxLength(keyLength: number, valueLength: number): number {
  const rest = keyLength + valueLength + 3;
  const length = rest + String(rest).length;
  return rest + String(length).length;
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
  for (let i = 0; i < bytes.length; i += 1) if (bytes[i]! > 0x7e || bytes[i]! < 0x20) return false;
  return true;
}
