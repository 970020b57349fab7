// Encodes tar headers: ustar, plus PAX records for what ustar cannot represent (long or non-ASCII names, nanoseconds,
// big numbers, xattrs, holes). Pure: entry in, bytes out.
import type { Entry } from "../model/entry.ts";
import { encodePath } from "../model/path-bytes.ts";

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

/** OCI treats a name with this prefix as a deletion: real files with such names are escaped. */
export const WHITEOUT_PREFIX = ".wh.";
const ESCAPE = ".lazarus";
/** A name that looks like a whiteout or like an escaped one: both get one more escape, so that decoding is exact. */
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
  /** For a plain archive, which has no whiteouts: names that start with `.wh.` are not escaped. */
  readonly plainNames?: boolean;
}

/** A buffer under construction. `reserve` may replace `bytes`. */
export interface TarTarget {
  bytes: Uint8Array;
  length: number;
  /** Ensures capacity for `count` bytes after `length`. */
  reserve(count: number): void;
}

/** The header of one entry, PAX part included. */
export function encodeHeader(entry: Entry, options: HeaderOptions): Buffer {
  scratch.length = 0;
  writeHeader(scratch, entry, options);
  return Buffer.from(scratch.bytes.subarray(0, scratch.length));
}

/**
 * Appends the header to `tar`. A checkpoint writes one per file: setting bytes directly, without intermediate strings and
 * buffers, takes a quarter of the time.
 */
export function writeHeader(tar: TarTarget, entry: Entry, options: HeaderOptions): void {
  const { linkTo, storedSize, plainNames } = options;
  const spell = plainNames ? (path: string) => path : tarPath;
  const name = tarName(entry.path, entry.type === "directory", spell);
  const link = toText(
    entry.type === "symlink" ? (entry.target ?? "") : linkTo === undefined ? "" : spell(linkTo),
  );
  const start = tar.length;
  tar.reserve(BLOCK * 2);
  tar.length += BLOCK;
  if (entry.extents !== undefined && linkTo === undefined) {
    writeRecord(tar, "GNU.sparse.major", "1");
    writeRecord(tar, "GNU.sparse.minor", "0");
    writeRecord(tar, "GNU.sparse.name", name);
    writeRecord(tar, "GNU.sparse.realsize", String(entry.size));
  }
  if (name.length > 100 || typeof name !== "string") writeRecord(tar, "path", name);
  if (link.length > 100 || typeof link !== "string") writeRecord(tar, "linkpath", link);
  writeTime(tar, entry);
  if (storedSize > MAX_OCTAL_12) writeRecord(tar, "size", String(storedSize));
  if (entry.uid > MAX_OCTAL_8) writeRecord(tar, "uid", String(entry.uid));
  if (entry.gid > MAX_OCTAL_8) writeRecord(tar, "gid", String(entry.gid));
  if (entry.xattrs !== undefined)
    for (const [key, value] of entry.xattrs)
      writeRecord(tar, Buffer.from(`SCHILY.xattr.${key}`), Buffer.from(value, "base64"));
  closePax(tar, start);
  const flag = linkTo === undefined ? TYPE_FLAGS[entry.type] : TYPE_FLAGS.link;
  writeUstar(tar, { name, link, flag, entry, storedSize });
}

/** A whiteout: OCI's marker that `path` of a lower layer is removed. */
export function encodeWhiteout(path: string): Buffer {
  const slash = path.lastIndexOf("/");
  const name = `${tarPath(path.slice(0, slash + 1))}${WHITEOUT_PREFIX}${tarPath(path.slice(slash + 1))}`;
  const text = toText(name);
  scratch.length = BLOCK;
  if (text.length > 100 || typeof text !== "string") writeRecord(scratch, "path", text);
  closePax(scratch, 0);
  writeUstar(scratch, { name: text, flag: TYPE_FLAGS.file, entry: PAX_OWNER, storedSize: 0 });
  return Buffer.from(scratch.bytes.subarray(0, scratch.length));
}

export function encodeWhiteouts(paths: readonly string[]): Buffer {
  return Buffer.concat(paths.map(encodeWhiteout));
}

/**
 * The map that precedes the data of a sparse file (GNU format 1.0), padded to a block. A hole at the end is followed by an
 * empty extent, as GNU tar does: without it `tar x` would truncate the file after its last byte of data.
 */
export function encodeSparseMap(extents: NonNullable<Entry["extents"]>, size: number): Buffer {
  const last = extents.at(-1);
  const closed =
    last !== undefined && last[0] + last[1] === size ? extents : [...extents, [size, 0] as const];
  const lines = [closed.length, ...closed.flat()].map((number) => `${number}\n`).join("");
  return Buffer.concat([Buffer.from(lines), Buffer.alloc(padding(lines.length))]);
}

/** A comment at the start of an archive, which every reader skips. */
export function encodeGlobalComment(text: string): Buffer {
  scratch.length = BLOCK;
  writeRecord(scratch, "comment", Buffer.from(text));
  const length = scratch.length - BLOCK;
  writeZeros(scratch, padding(length));
  const end = scratch.length;
  scratch.length = 0;
  const name = "PaxHeaders/global";
  writeUstar(scratch, { name, flag: TYPE_FLAGS.global, entry: PAX_OWNER, storedSize: length });
  return Buffer.from(scratch.bytes.subarray(0, end));
}

/** The path as stored in a layer: names that look like whiteouts are escaped. */
export function tarPath(path: string): string {
  if (!path.includes(WHITEOUT_PREFIX)) return path;
  return path
    .split("/")
    .map((name) => (NEEDS_ESCAPE.test(name) ? ESCAPE + name : name))
    .join("/");
}

/** Decodes one escaped name. */
export function fromTarName(name: string): string {
  return IS_ESCAPED.test(name) ? name.slice(ESCAPE.length) : name;
}

/** Printable ASCII as a string, anything else as bytes: `length` is the number of bytes either way. */
type Text = string | Buffer;

const PRINTABLE = /^[ -~]*$/;

function toText(path: string): Text {
  return PRINTABLE.test(path) ? path : encodePath(path);
}

function tarName(path: string, isDirectory: boolean, spell: (path: string) => string): Text {
  if (path === ".") return "./";
  return toText(isDirectory ? `${spell(path)}/` : spell(path));
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

/** The constant part of every header: magic, version, empty owner names, device numbers of zero, blanks for the checksum. */
const TEMPLATE = Buffer.alloc(BLOCK);
TEMPLATE.write("        ", 148, "latin1");
TEMPLATE.write(`ustar\u000000${"\0".repeat(64)}0000000\u00000000000\0`, 257, "latin1");
const TEMPLATE_SUM = TEMPLATE.reduce((sum, byte) => sum + byte, 0);

const scratch: TarTarget = {
  bytes: Buffer.alloc(8 * BLOCK),
  length: 0,
  reserve(count) {
    if (this.length + count <= this.bytes.length) return;
    const larger = Buffer.alloc((this.length + count) * 2);
    larger.set(this.bytes);
    this.bytes = larger;
  },
};

interface UstarFields {
  readonly name: Text;
  readonly link?: Text;
  readonly flag: string;
  readonly entry: Entry;
  readonly storedSize: number;
}

/** Appends a ustar header. */
function writeUstar(tar: TarTarget, { name, link = "", flag, entry, storedSize }: UstarFields): void {
  tar.reserve(BLOCK);
  const { bytes, length: at } = tar;
  const { mode, uid, gid, mtimeSec } = entry;
  bytes.set(TEMPLATE, at);
  const sum =
    TEMPLATE_SUM +
    putText(bytes, at, name, 100) +
    putOctal(bytes, at + 100, 7, mode) +
    putOctal(bytes, at + 108, 7, uid > MAX_OCTAL_8 ? 0 : uid) +
    putOctal(bytes, at + 116, 7, gid > MAX_OCTAL_8 ? 0 : gid) +
    putOctal(bytes, at + 124, 11, storedSize > MAX_OCTAL_12 ? 0 : storedSize) +
    putOctal(bytes, at + 136, 11, mtimeSec < 0 || mtimeSec > MAX_OCTAL_12 ? 0 : mtimeSec) +
    putText(bytes, at + 156, flag, 1) +
    putText(bytes, at + 157, link, 100);
  putOctal(bytes, at + 148, 6, sum);
  bytes[at + 154] = 0;
  tar.length += BLOCK;
}

/** Writes at most `limit` bytes and returns their sum. */
function putText(bytes: Uint8Array, at: number, text: Text, limit: number): number {
  const count = Math.min(text.length, limit);
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    const byte = typeof text === "string" ? text.charCodeAt(i) : text[i]!;
    bytes[at + i] = byte;
    sum += byte;
  }
  return sum;
}

/** Works on 32-bit integers: dividing doubles for every digit takes four times as long. */
function putOctal(bytes: Uint8Array, at: number, width: number, value: number): number {
  const high = Math.floor(value / OCTAL_HALF);
  let sum = 0;
  let rest = (value - high * OCTAL_HALF) | 0;
  for (let i = at + width - 1; i >= at; i -= 1) {
    if (i === at + width - 1 - OCTAL_HALF_DIGITS) rest = high;
    const digit = rest & 7;
    bytes[i] = 0x30 + digit;
    sum += 0x30 + digit;
    rest >>>= 3;
  }
  return sum;
}

const OCTAL_HALF_DIGITS = 8;
const OCTAL_HALF = 8 ** OCTAL_HALF_DIGITS;

function putDecimal(bytes: Uint8Array, at: number, width: number, value: number): void {
  let rest = value | 0;
  for (let i = at + width - 1; i >= at; i -= 1) {
    const tenth = (rest / 10) | 0;
    bytes[i] = 0x30 + rest - tenth * 10;
    rest = tenth;
  }
}

function writeZeros(tar: TarTarget, count: number): void {
  tar.reserve(count);
  for (let i = tar.length; i < tar.length + count; i += 1) tar.bytes[i] = 0;
  tar.length += count;
}

/** Completes the PAX header whose block was reserved at `start`, or drops it when there are no records. */
function closePax(tar: TarTarget, start: number): void {
  const length = tar.length - start - BLOCK;
  if (length === 0) tar.length = start;
  else {
    writeZeros(tar, padding(length));
    tar.bytes.set(paxHead(length), start);
  }
}

const paxHeads = new Map<number, Uint8Array>();

/** PAX headers differ only in their length, which is almost always one of two values. */
function paxHead(length: number): Uint8Array {
  let head = paxHeads.get(length);
  if (head === undefined) {
    head = new Uint8Array(BLOCK);
    const tar = { bytes: head, length: 0, reserve() {} };
    const name = "PaxHeaders/entry";
    writeUstar(tar, { name, flag: TYPE_FLAGS.pax, entry: PAX_OWNER, storedSize: length });
    if (length < BLOCK) paxHeads.set(length, head);
  }
  return head;
}

/** "30 mtime=1700000000.123456789\n": the length counts its own digits. */
function writeRecord(tar: TarTarget, key: Text, value: Text): void {
  const rest = key.length + value.length + 3;
  const length = rest + String(rest + String(rest).length).length;
  tar.reserve(length);
  let at = tar.length;
  const put = (text: Text) => {
    putText(tar.bytes, at, text, text.length);
    at += text.length;
  };
  put(`${length} `);
  put(key);
  put("=");
  put(value);
  put("\n");
  tar.length = at;
}

const TIME_RECORD = Buffer.from("30 mtime=0000000000.000000000\n");

/** Only where ustar cannot represent the time. */
function writeTime(tar: TarTarget, entry: Entry): void {
  const { mtimeSec, mtimeNs } = entry;
  if (mtimeNs === 0 && mtimeSec >= 0 && mtimeSec <= MAX_OCTAL_12) return;
  if (mtimeSec < 1e9 || mtimeSec >= 1e10 || mtimeNs === 0) {
    writeRecord(tar, "mtime", paxTime(entry));
    return;
  }
  tar.reserve(TIME_RECORD.length);
  tar.bytes.set(TIME_RECORD, tar.length);
  const high = Math.floor(mtimeSec / 1e5);
  putDecimal(tar.bytes, tar.length + 9, 5, high);
  putDecimal(tar.bytes, tar.length + 14, 5, mtimeSec - high * 1e5);
  putDecimal(tar.bytes, tar.length + 20, 9, mtimeNs);
  tar.length += TIME_RECORD.length;
}

function paxTime(entry: Entry): string {
  // -1.25 s is -2 s + 0.75 s in an entry, and "-1.25" in PAX.
  const negative = entry.mtimeSec < 0 && entry.mtimeNs > 0;
  const seconds = negative ? entry.mtimeSec + 1 : entry.mtimeSec;
  const nanos = negative ? 1_000_000_000 - entry.mtimeNs : entry.mtimeNs;
  const sign = negative && seconds === 0 ? "-" : "";
  return `${sign}${seconds}${nanos === 0 ? "" : `.${String(nanos).padStart(9, "0")}`}`;
}
