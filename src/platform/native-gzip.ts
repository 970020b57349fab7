// gzip through a library of the machine where it has one: ISA-L (Debian's libisal2, Homebrew's isa-l) or libdeflate
// (libdeflate0, libdeflate). Sources and their tar headers, a core: ISA-L 480 MB/s, libdeflate 180, Node's zlib 110, the
// first 2 % smaller than zlib's level 1 and the second 9 %. Where neither is there, zlib does the same work.
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";

/** Writes a gzip member into `out` and says how long it is; 0 when it does not fit. */
export type GzipInto = (raw: Uint8Array, out: Uint8Array) => number;

interface Maker {
  readonly name: string;
  readonly files: { readonly [platform in NodeJS.Platform]?: readonly string[] };
  readonly open: (library: Library) => GzipInto | undefined;
}

export const ISAL: Maker = {
  name: "ISA-L",
  files: { linux: ["libisal.so.2"], darwin: ["libisal.2.dylib", "libisal.dylib"] },
  open: openIsal,
};
export const LIBDEFLATE: Maker = {
  name: "libdeflate",
  files: { linux: ["libdeflate.so.0"], darwin: ["libdeflate.0.dylib", "libdeflate.dylib"] },
  open: openLibdeflate,
};

export interface NativeGzip {
  /** Of the library. */
  readonly name: string;
  readonly into: GzipInto;
}

let found: NativeGzip | null | undefined;

/** The fastest that is there. */
export function nativeGzip(): NativeGzip | undefined {
  if (found === undefined) found = find() ?? null;
  return found ?? undefined;
}

function find(): NativeGzip | undefined {
  for (const maker of [ISAL, LIBDEFLATE]) {
    const into = loadGzip(maker);
    if (into !== undefined) return { name: maker.name, into };
  }
  return undefined;
}

/** Undefined where the library is absent, or does not do what its name promises. */
export function loadGzip({ files, open }: Maker): GzipInto | undefined {
  for (const file of files[process.platform] ?? []) {
    try {
      const gzip = open(koffi().load(file));
      if (gzip !== undefined && keepsItsWord(gzip)) return gzip;
    } catch {
      // Not here under this name.
    }
  }
  return undefined;
}

interface Library {
  // biome-ignore lint/suspicious/noExplicitAny: what a C function takes and gives is written in its signature.
  func(signature: string): (...values: any[]) => any;
}

const koffi = (): { load(file: string | null): Library } => createRequire(import.meta.url)("koffi");

/** What it writes must read back as it was: these bytes are all that is left of someone's files. */
function keepsItsWord(gzip: GzipInto): boolean {
  const raw = Buffer.from("The same words, and once more the same words: 0123456789.\n".repeat(300));
  const out = new Uint8Array(raw.length);
  const length = gzip(raw, out);
  return length > 0 && length < raw.length && gunzipSync(out.subarray(0, length)).equals(raw);
}

function openLibdeflate(library: Library): GzipInto | undefined {
  const compress = library.func(
    "size_t libdeflate_gzip_compress(void *compressor, const void *in, size_t length, void *out, size_t room)",
  );
  // 1: the fastest that looks for matches at all.
  const compressor = library.func("void *libdeflate_alloc_compressor(int level)")(1);
  if (compressor === null) return undefined;
  return (raw, out) => Number(compress(compressor, raw, raw.length, out, out.length));
}

/** `struct isal_zstream` of libisal.so.2 where pointers have 64 bits: its fields, and room for it and for level 1. */
const STREAM = {
  nextIn: 0,
  availableIn: 8,
  nextOut: 16,
  availableOut: 24,
  totalOut: 28,
  level: 40,
  levelBytes: 44,
  levelMemory: 48,
  isLast: 56,
  gzipFlag: 60,
} as const;
const STREAM_BYTES = 128 << 10;
const LEVEL = 1;
const LEVEL_BYTES = 276 << 10;
const WITH_HEADER_AND_TRAILER = 1;
/** V8 keeps the bytes of shorter arrays in its own heap, where they move. */
const SHORTEST = 1024;

function openIsal(library: Library): GzipInto | undefined {
  if (process.arch !== "x64" && process.arch !== "arm64") return undefined;
  const begin = library.func("void isal_deflate_stateless_init(void *stream)");
  const deflate = library.func("int isal_deflate_stateless(void *stream)");
  // It takes addresses, in a structure. memmove gives back the one it was given.
  const moved = koffi().load(null).func("uintptr_t memmove(void *to, const void *from, size_t length)");
  const addressOf = (bytes: Uint8Array) => BigInt(moved(bytes, bytes, 0));
  const stream = Buffer.from(new ArrayBuffer(STREAM_BYTES));
  const memory = new Uint8Array(LEVEL_BYTES);
  return (raw, out) => {
    if (raw.length < SHORTEST || out.length < SHORTEST) return 0;
    begin(stream);
    stream.writeUInt32LE(LEVEL, STREAM.level);
    stream.writeUInt32LE(memory.length, STREAM.levelBytes);
    stream.writeBigUInt64LE(addressOf(memory), STREAM.levelMemory);
    stream.writeUInt16LE(1, STREAM.isLast);
    stream.writeUInt16LE(WITH_HEADER_AND_TRAILER, STREAM.gzipFlag);
    stream.writeBigUInt64LE(addressOf(raw), STREAM.nextIn);
    stream.writeUInt32LE(raw.length, STREAM.availableIn);
    stream.writeBigUInt64LE(addressOf(out), STREAM.nextOut);
    stream.writeUInt32LE(out.length, STREAM.availableOut);
    return deflate(stream) === 0 ? stream.readUInt32LE(STREAM.totalOut) : 0;
  };
}
