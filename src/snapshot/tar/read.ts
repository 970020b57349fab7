// A streaming tar reader: ustar, PAX, GNU long names, base-256 numbers and all four sparse formats. No I/O: bytes are
// pushed in and entries are passed to a sink; only the current header is buffered. Archives are untrusted input: every
// length is checked before it is used, and anything malformed is a TarError.
import { decodePath } from "../model/path-bytes.ts";
import { BLOCK, padding } from "./header.ts";
import { checkOwner, readDecimal, readNumber, readPaxTime, TarError } from "./number.ts";
import {
  checkExtents,
  createSparseMapReader,
  type Extents,
  type OldSparse,
  oldSparse,
  type PaxRecords,
  readPairs,
  readPaxRecords,
  readSparseList,
} from "./pax.ts";

export { TarError } from "./number.ts";

export type TarType = "file" | "link" | "symlink" | "directory" | "fifo" | "device";

export interface TarEntry {
  /** As in the archive, without a final slash: validate before use. */
  readonly path: string;
  readonly type: TarType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  /** Size of a file, holes included; 0 for other types. */
  readonly size: number;
  /** Symlinks and hard links only. */
  readonly target?: string;
  readonly xattrs?: readonly (readonly [name: string, base64: string])[];
  readonly extents?: Extents;
}

export interface TarSink {
  entry(entry: TarEntry): void;
  /** A file's stored bytes in order; those of a sparse file are its extents end to end. */
  data(chunk: Buffer): void;
  /** The entry is complete. */
  close(): void;
  /** A comment on the whole archive. */
  comment?(text: Buffer): void;
}

/** PAX headers and long names: Linux allows xattrs of 64 KiB, and a file may have several. */
const HEADER_LIMIT_BYTES = 4 << 20;
const SPARSE_LIMIT_NUMBERS = 1 << 20;
const XATTR = "SCHILY.xattr.";

const TYPES: Readonly<Record<string, TarType>> = {
  "\0": "file",
  "0": "file",
  "7": "file",
  S: "file",
  "1": "link",
  "2": "symlink",
  "3": "device",
  "4": "device",
  "5": "directory",
  "6": "fifo",
};

/** Headers that describe the following entries: PAX for one or for all, and GNU's long names. */
const META = new Set(["x", "X", "g", "L", "K"]);

type Step =
  | { kind: "collect"; into: Buffer; filled: number; then: (bytes: Buffer) => void }
  | { kind: "stream"; left: number; use: ((chunk: Buffer) => void) | undefined; then: () => void }
  | { kind: "finished" };

export class TarReader {
  private readonly sink: TarSink;
  private globals: ReadonlyMap<string, Buffer> = new Map();
  /** From headers that describe the next entry. */
  private records: PaxRecords | undefined;
  private longName: Buffer | undefined;
  private longLink: Buffer | undefined;
  private isBetweenEntries = true;
  private isAtHeader = true;
  private step: Step = { kind: "finished" };

  constructor(sink: TarSink) {
    this.sink = sink;
    this.nextHeader();
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = 0;
    for (;;) {
      const step: Step = this.step;
      if (step.kind === "finished") return;
      if (step.kind === "collect") {
        const count = bytes.copy(step.into, step.filled, at);
        at += count;
        step.filled += count;
        if (step.filled < step.into.length) return;
        step.then(step.into);
      } else {
        if (step.left > 0) {
          const part = bytes.subarray(at, at + step.left);
          if (part.length === 0) return;
          at += part.length;
          step.left -= part.length;
          step.use?.(part);
        }
        if (step.left === 0) step.then();
      }
    }
  }

  /** Throws when the archive is truncated. */
  end(): void {
    const { step } = this;
    if (step.kind === "finished") return;
    // Some writers omit the two empty blocks: the stream may also end between two entries.
    const isComplete = this.isAtHeader && step.kind === "collect" && step.filled === 0;
    if (!isComplete || !this.isBetweenEntries) throw new TarError("the archive is truncated");
  }

  private collect(length: number, then: (bytes: Buffer) => void): void {
    this.step = { kind: "collect", into: Buffer.alloc(length), filled: 0, then };
  }

  private stream(left: number, use: ((chunk: Buffer) => void) | undefined, then: () => void): void {
    this.step = { kind: "stream", left, use, then };
  }

  private nextHeader(): void {
    this.isBetweenEntries =
      this.records === undefined && this.longName === undefined && this.longLink === undefined;
    this.isAtHeader = true;
    this.collect(BLOCK, (block) => {
      this.isAtHeader = false;
      this.readHeader(block);
    });
  }

  private readHeader(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      // The end of the archive; anything after it is ignored.
      if (!this.isBetweenEntries)
        throw new TarError("the archive ends before the entry that its last header describes");
      this.step = { kind: "finished" };
      return;
    }
    checkSum(block);
    const flag = String.fromCharCode(block[156]!);
    const size = readNumber(block, 124, 12, "size");
    if (size < 0) throw new TarError("size is negative");
    const type = TYPES[flag];
    if (META.has(flag)) this.readMeta(flag, size);
    else if (flag === "V") this.stream(padded(size), undefined, () => this.nextHeader());
    else if (type !== undefined) this.readEntry(block, type, flag, size);
    else throw new TarError(`an entry has the unknown type ${JSON.stringify(flag)}`);
  }

  private readMeta(flag: string, size: number): void {
    if (size > HEADER_LIMIT_BYTES) throw new TarError(`a header of ${size} bytes is too large`);
    this.isBetweenEntries = false;
    const take = (bytes: Buffer) => {
      const body = bytes.subarray(0, size);
      if (flag === "g") {
        const { values } = readPaxRecords(body);
        this.globals = new Map([...this.globals, ...values]);
        this.sink.comment?.(values.get("comment") ?? Buffer.alloc(0));
      } else if (flag === "L") this.longName = untilNul(body);
      else if (flag === "K") this.longLink = untilNul(body);
      else this.records = readPaxRecords(body);
      this.nextHeader();
    };
    if (size === 0) take(Buffer.alloc(0));
    else this.collect(padded(size), take);
  }

  private readEntry(block: Buffer, type: TarType, flag: string, headerSize: number): void {
    this.isBetweenEntries = false;
    const { records, sink } = this;
    // Links have no content, regardless of their size field; other entries are skipped by size.
    const onTape = type === "link" ? 0 : this.paxNumber("size", headerSize);
    const base = this.describeEntry(block, type, flag);
    this.records = undefined;
    this.longName = undefined;
    this.longLink = undefined;
    if (base.type !== "file") {
      sink.entry({ ...base, size: 0 });
      this.stream(padded(onTape), undefined, () => this.closeEntry());
      return;
    }
    const start = (flat: readonly number[] | undefined, size: number, stored: number) => {
      const extents = flat === undefined ? undefined : checkExtents(flat, size, stored);
      sink.entry({ ...base, size, ...(extents === undefined ? {} : { extents }) });
      const skipPadding = () => this.stream(padding(onTape), undefined, () => this.closeEntry());
      this.stream(stored, (chunk) => sink.data(chunk), skipPadding);
    };
    const list = records?.values.get("GNU.sparse.map");
    if (flag === "S") {
      const old = oldSparse(block);
      this.readOldSparse(old, (flat) => start(flat, old.size, onTape));
    } else if (records?.values.get("GNU.sparse.major")?.toString("latin1") === "1") {
      this.readSparseMap(onTape, (flat, used) => start(flat, sizeOf(records, "realsize"), onTape - used));
    } else if (list !== undefined) {
      start(readSparseList(list.toString("latin1")), sizeOf(records, "size"), onTape);
    } else if (records !== undefined && records.sparsePairs.length > 0) {
      start(records.sparsePairs, sizeOf(records, "size"), onTape);
    } else start(undefined, onTape, onTape);
  }

  private closeEntry(): void {
    this.sink.close();
    this.nextHeader();
  }

  private pax(key: string): Buffer | undefined {
    return this.records?.values.get(key) ?? this.globals.get(key);
  }

  private paxNumber(key: string, fallback: number): number {
    const value = this.pax(key);
    return value === undefined ? fallback : readDecimal(value.toString("latin1"), key);
  }

  /** Everything but the size. */
  private describeEntry(block: Buffer, type: TarType, flag: string): Omit<TarEntry, "size" | "extents"> {
    const mtime = this.pax("mtime");
    const name = this.pax("GNU.sparse.name") ?? this.pax("path") ?? this.longName ?? headerName(block);
    const link = this.pax("linkpath") ?? this.longLink ?? untilNul(block.subarray(157, 257));
    // Old archives mark a directory only by a slash at the end of its name.
    const real: TarType = (flag === "\0" || flag === "0") && name.at(-1) === 0x2f ? "directory" : type;
    return {
      path: cleanName(name),
      type: real,
      mode: readNumber(block, 100, 8, "mode") & 0o7777,
      uid: checkOwner(this.paxNumber("uid", Math.max(0, readNumber(block, 108, 8, "uid"))), "uid"),
      gid: checkOwner(this.paxNumber("gid", Math.max(0, readNumber(block, 116, 8, "gid"))), "gid"),
      ...(mtime === undefined
        ? { mtimeSec: readNumber(block, 136, 12, "mtime"), mtimeNs: 0 }
        : readPaxTime(mtime.toString("latin1"))),
      ...(real === "link" || real === "symlink"
        ? { target: decodePath(refuseNul(link, "a link target")) }
        : {}),
      ...xattrsOf(this.records, this.globals),
    };
  }

  /** Sparse format 1.0: the map is stored in whole blocks before the data. */
  private readSparseMap(onTape: number, then: (flat: number[], used: number) => void): void {
    const map = createSparseMapReader(SPARSE_LIMIT_NUMBERS);
    let used = 0;
    const readBlock = (bytes: Buffer) => {
      used += BLOCK;
      const flat = map.block(bytes);
      if (flat !== undefined) then(flat, used);
      else if (used + BLOCK > padded(onTape)) throw new TarError("a sparse map is truncated");
      else this.collect(BLOCK, readBlock);
    };
    if (onTape < BLOCK) throw new TarError("a sparse map is missing");
    this.collect(BLOCK, readBlock);
  }

  /** The old GNU type `S`: four pairs in the header, more in the blocks after it. */
  private readOldSparse(old: OldSparse, then: (flat: number[]) => void): void {
    if (!old.continued) {
      then(old.flat);
      return;
    }
    this.collect(BLOCK, (block) => {
      const flat = [...old.flat, ...readPairs(block, 0, 21)];
      if (flat.length > SPARSE_LIMIT_NUMBERS) throw new TarError("the sparse map is too long");
      this.readOldSparse({ ...old, flat, continued: block[504] === 1 }, then);
    });
  }
}

function sizeOf(records: PaxRecords | undefined, field: "size" | "realsize"): number {
  const key = `GNU.sparse.${field}`;
  const value = records?.values.get(key);
  if (value === undefined) throw new TarError(`a sparse file has no ${key}`);
  return readDecimal(value.toString("latin1"), key);
}

function xattrsOf(
  records: PaxRecords | undefined,
  globals: ReadonlyMap<string, Buffer>,
): { xattrs?: [string, string][] } {
  const found: [string, string][] = [];
  for (const source of [globals, records?.values]) {
    for (const [key, value] of source ?? []) {
      if (key.startsWith(XATTR)) found.push([key.slice(XATTR.length), value.toString("base64")]);
    }
  }
  return found.length === 0 ? {} : { xattrs: found };
}

function headerName(block: Buffer): Buffer {
  const name = untilNul(block.subarray(0, 100));
  // With GNU's magic ("ustar  ") the field that POSIX uses as the prefix holds something else.
  if (block.toString("latin1", 257, 263) !== "ustar\0") return name;
  const prefix = untilNul(block.subarray(345, 500));
  return prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from("/"), name]);
}

function cleanName(bytes: Buffer): string {
  const path = decodePath(refuseNul(bytes, "a name"));
  return path.length > 1 ? path.replace(/\/+$/, "") || "/" : path;
}

/** PAX values may contain any byte, and no system call accepts this one in a path. */
function refuseNul(bytes: Buffer, what: string): Buffer {
  if (bytes.includes(0)) throw new TarError(`${what} contains a NUL byte`);
  return bytes;
}

function untilNul(bytes: Buffer): Buffer {
  const nul = bytes.indexOf(0);
  return nul < 0 ? bytes : bytes.subarray(0, nul);
}

/** Some old writers summed signed bytes: both sums are valid. */
function checkSum(block: Buffer): void {
  let unsigned = 8 * 0x20;
  let signed = unsigned;
  for (let i = 0; i < BLOCK; i += 1) {
    if (i >= 148 && i < 156) continue;
    const byte = block[i]!;
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  const stated = readNumber(block, 148, 8, "the checksum");
  if (stated !== unsigned && stated !== signed)
    throw new TarError("a header's checksum does not match; this is not a tar archive, or it is damaged");
}

function padded(size: number): number {
  return size + padding(size);
}
