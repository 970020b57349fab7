// A streaming tar reader: ustar, PAX, GNU long names, base-256 numbers and all four ways to write a sparse file. Pure
// over chunks: bytes are pushed in, entries come out, nothing is kept but the header under way. Archives are hostile
// input: every length is bounded before it is believed, and anything odd is a TarError, never a guess.
import { decodePath } from "../model/path-bytes.ts";
import { readDecimal, readNumber, readPaxTime, TarError } from "./number.ts";
import {
  checkExtents,
  createSparseMapReader,
  type Extents,
  type PaxRecords,
  readPaxRecords,
  readSparseList,
} from "./pax.ts";

export { TarError } from "./number.ts";

export type TarType = "file" | "link" | "symlink" | "directory" | "fifo" | "device";

export interface TarEntry {
  /** As the archive says it, but for a final slash: check before use. */
  readonly path: string;
  readonly type: TarType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  /** Of a file as its reader sees it, holes included; 0 for the rest. */
  readonly size: number;
  /** Of symlinks and hard links. */
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
}

export interface TarReader {
  push(chunk: Uint8Array): void;
  /** Throws when the archive stops in the middle. */
  end(): void;
}

const BLOCK = 512;
/** PAX headers and long names: the largest xattr that Linux takes is 64 KiB, and a file may have several. */
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

/** PAX for one entry or for all, and GNU's long names: headers that speak of the entry after them. */
const META = new Set(["x", "X", "g", "L", "K"]);

type Step =
  | { kind: "collect"; into: Buffer; filled: number; then: (bytes: Buffer) => void }
  | { kind: "stream"; left: number; use: ((chunk: Buffer) => void) | undefined; then: () => void }
  | { kind: "finished" };

export function createTarReader(sink: TarSink): TarReader {
  let globals: ReadonlyMap<string, Buffer> = new Map();
  let records: PaxRecords | undefined;
  let longName: Buffer | undefined;
  let longLink: Buffer | undefined;
  let step: Step;
  let betweenEntries = true;

  const collect = (length: number, then: (bytes: Buffer) => void) => {
    step = { kind: "collect", into: Buffer.alloc(length), filled: 0, then };
  };
  const stream = (left: number, use: ((chunk: Buffer) => void) | undefined, then: () => void) => {
    step = { kind: "stream", left, use, then };
  };
  const nextHeader = () => {
    betweenEntries = records === undefined && longName === undefined && longLink === undefined;
    collect(BLOCK, readHeader);
  };

  function readHeader(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      // The end. What follows is padding, or not ours to read.
      if (!betweenEntries) throw new TarError("the archive ends after a header that announces an entry");
      step = { kind: "finished" };
      return;
    }
    checkSum(block);
    const flag = String.fromCharCode(block[156]!);
    const size = readNumber(block, 124, 12, "size");
    if (size < 0) throw new TarError("size is negative");
    const type = TYPES[flag];
    if (META.has(flag)) readMeta(flag, size);
    else if (flag === "V") stream(padded(size), undefined, nextHeader);
    else if (type !== undefined) readEntry(block, type, flag, size);
    else throw new TarError(`an entry has the unknown type ${JSON.stringify(flag)}`);
  }

  function readMeta(flag: string, size: number): void {
    if (size > HEADER_LIMIT_BYTES) throw new TarError(`a header of ${size} bytes is too large`);
    betweenEntries = false;
    const take = (bytes: Buffer) => {
      const body = bytes.subarray(0, size);
      if (flag === "g") globals = new Map([...globals, ...readPaxRecords(body).values]);
      else if (flag === "L") longName = untilNul(body);
      else if (flag === "K") longLink = untilNul(body);
      else records = readPaxRecords(body);
      nextHeader();
    };
    if (size === 0) take(Buffer.alloc(0));
    else collect(padded(size), take);
  }

  function readEntry(block: Buffer, type: TarType, flag: string, headerSize: number): void {
    betweenEntries = false;
    const pax = (key: string) => records?.values.get(key) ?? globals.get(key);
    const number = (key: string, fallback: number) => {
      const value = pax(key);
      return value === undefined ? fallback : readDecimal(value.toString("latin1"), key);
    };
    // Links have nothing on tape, whatever their size says; the rest is skipped by size.
    const onTape = type === "link" ? 0 : number("size", headerSize);
    const mtime = pax("mtime");
    const name = pax("GNU.sparse.name") ?? pax("path") ?? longName ?? headerName(block);
    const link = pax("linkpath") ?? longLink ?? untilNul(block.subarray(157, 257));
    // Old archives mark a directory by the slash at the end of its name alone.
    const real: TarType = (flag === "\0" || flag === "0") && name.at(-1) === 0x2f ? "directory" : type;
    const base = {
      path: cleanName(name),
      type: real,
      mode: readNumber(block, 100, 8, "mode") & 0o7777,
      uid: number("uid", Math.max(0, readNumber(block, 108, 8, "uid"))),
      gid: number("gid", Math.max(0, readNumber(block, 116, 8, "gid"))),
      ...(mtime === undefined
        ? { mtimeSec: readNumber(block, 136, 12, "mtime"), mtimeNs: 0 }
        : readPaxTime(mtime.toString("latin1"))),
      ...(real === "link" || real === "symlink" ? { target: decodePath(link) } : {}),
      ...xattrsOf(records, globals),
    };
    const sparse = records;
    const old = flag === "S" ? oldSparse(block) : undefined;
    records = undefined;
    longName = undefined;
    longLink = undefined;

    const begin = (flat: readonly number[] | undefined, size: number, stored: number) => {
      const extents = flat === undefined ? undefined : checkExtents(flat, size, stored);
      sink.entry({ ...base, size, ...(extents === undefined ? {} : { extents }) });
      stream(
        stored,
        (chunk) => sink.data(chunk),
        () => {
          stream(padding(onTape), undefined, () => {
            sink.close();
            nextHeader();
          });
        },
      );
    };
    const list = sparse?.values.get("GNU.sparse.map");
    if (real !== "file") {
      sink.entry({ ...base, size: 0 });
      stream(padded(onTape), undefined, () => {
        sink.close();
        nextHeader();
      });
    } else if (old !== undefined) readOldSparse(old, (flat) => begin(flat, old.size, onTape));
    else if (sparse?.values.get("GNU.sparse.major")?.toString("latin1") === "1") {
      readSparseMap(onTape, (flat, used) => begin(flat, sizeOf(sparse, "realsize"), onTape - used));
    } else if (list !== undefined) {
      begin(readSparseList(list.toString("latin1")), sizeOf(sparse, "size"), onTape);
    } else if (sparse !== undefined && sparse.sparsePairs.length > 0) {
      begin(sparse.sparsePairs, sizeOf(sparse, "size"), onTape);
    } else begin(undefined, onTape, onTape);
  }

  /** Sparse format 1.0: the map stands in whole blocks before the data. */
  function readSparseMap(onTape: number, then: (flat: number[], used: number) => void): void {
    const map = createSparseMapReader(SPARSE_LIMIT_NUMBERS);
    let used = 0;
    const readBlock = (bytes: Buffer) => {
      used += BLOCK;
      const flat = map.block(bytes);
      if (flat !== undefined) then(flat, used);
      else if (used + BLOCK > padded(onTape)) throw new TarError("a sparse map is cut short");
      else collect(BLOCK, readBlock);
    };
    if (onTape < BLOCK) throw new TarError("a sparse map is missing");
    collect(BLOCK, readBlock);
  }

  /** The old GNU type `S`: four pairs in the header, more in blocks that follow it. */
  function readOldSparse(old: OldSparse, then: (flat: number[]) => void): void {
    if (!old.continued) {
      then(old.flat);
      return;
    }
    collect(BLOCK, (block) => {
      const more = readPairs(block, 0, 21);
      const flat = [...old.flat, ...more];
      if (flat.length > SPARSE_LIMIT_NUMBERS) throw new TarError("the sparse map is too long");
      readOldSparse({ ...old, flat, continued: block[504] === 1 }, then);
    });
  }

  collect(BLOCK, readHeader);
  return {
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let at = 0;
      for (;;) {
        const now: Step = step;
        if (now.kind === "finished") return;
        if (now.kind === "collect") {
          const count = bytes.copy(now.into, now.filled, at);
          at += count;
          now.filled += count;
          if (now.filled < now.into.length) return;
          now.then(now.into);
        } else {
          if (now.left > 0) {
            const part = bytes.subarray(at, at + now.left);
            if (part.length === 0) return;
            at += part.length;
            now.left -= part.length;
            now.use?.(part);
          }
          if (now.left === 0) now.then();
        }
      }
    },
    end() {
      if (step.kind === "finished") return;
      // Some writers leave the two empty blocks out: the end of the stream between entries is an end, too.
      const atHeader = step.kind === "collect" && step.then === readHeader && step.filled === 0;
      if (!atHeader || !betweenEntries) throw new TarError("the archive is cut short");
    },
  };
}

interface OldSparse {
  readonly flat: number[];
  readonly size: number;
  readonly continued: boolean;
}

function oldSparse(block: Buffer): OldSparse {
  const size = readNumber(block, 483, 12, "the real size");
  if (size < 0) throw new TarError("the real size is negative");
  return { flat: readPairs(block, 386, 4), size, continued: block[482] === 1 };
}

function readPairs(block: Buffer, at: number, count: number): number[] {
  const flat: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const start = at + i * 24;
    if (block[start] === 0) break;
    const offset = readNumber(block, start, 12, "the sparse map");
    const length = readNumber(block, start + 12, 12, "the sparse map");
    if (offset < 0 || length < 0) throw new TarError("the sparse map is negative");
    flat.push(offset, length);
  }
  return flat;
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
  // GNU's own magic ("ustar  ") puts other things where POSIX has the prefix.
  if (block.toString("latin1", 257, 263) !== "ustar\0") return name;
  const prefix = untilNul(block.subarray(345, 500));
  return prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from("/"), name]);
}

function cleanName(bytes: Buffer): string {
  const path = decodePath(untilNul(bytes));
  return path.length > 1 ? path.replace(/\/+$/, "") || "/" : path;
}

function untilNul(bytes: Buffer): Buffer {
  const nul = bytes.indexOf(0);
  return nul < 0 ? bytes : bytes.subarray(0, nul);
}

/** Some old writers summed signed bytes: either sum will do. */
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

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function padded(size: number): number {
  return size + padding(size);
}
