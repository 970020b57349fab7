// gzip through the machine's libdeflate, where it is installed: 180 MB/s per core on source files, against 110 for
// Node's zlib, and 9 % smaller output. Optional: callers fall back to zlib.
import { gunzipSync } from "node:zlib";
import { openLibrary } from "./posix.ts";

/** Returns one gzip member, in `into` if given; undefined when that is too small, or the member larger than its input. */
export type Gzip = (raw: Uint8Array, into?: Buffer) => Buffer | undefined;

const FILES: { readonly [platform in NodeJS.Platform]?: readonly string[] } = {
  linux: ["libdeflate.so.0"],
  darwin: ["libdeflate.0.dylib", "libdeflate.dylib"],
};
/** The fastest level that searches for matches. */
const LEVEL = 1;

let loaded: Gzip | null | undefined;

/** Undefined where the library is not installed. */
export function libdeflateGzip(): Gzip | undefined {
  if (loaded === undefined) loaded = FILES[process.platform]?.map(load).find(Boolean) ?? null;
  return loaded ?? undefined;
}

function load(file: string): Gzip | undefined {
  try {
    const library = openLibrary(file);
    const compressor = library.func("void *libdeflate_alloc_compressor(int level)")(LEVEL);
    if (compressor === null) return undefined;
    const compress = library.func(
      "size_t libdeflate_gzip_compress(void *compressor, const void *in, size_t length, void *out, size_t capacity)",
    );
    const gzip: Gzip = (raw, into) => {
      const out = into ?? Buffer.allocUnsafeSlow(raw.length);
      const length = Number(compress(compressor, raw, raw.length, out, out.length));
      return length === 0 ? undefined : out.subarray(0, length);
    };
    return roundTrips(gzip) ? gzip : undefined;
  } catch {
    // Not installed under this name, or koffi has no binary for this machine.
    return undefined;
  }
}

/** Checked once per process: the compressed bytes may be the only copy of the user's files. */
export function roundTrips(gzip: Gzip): boolean {
  const raw = Buffer.from("The same words, and once more the same words: 0123456789.\n".repeat(300));
  const member = gzip(raw);
  if (member === undefined || member.length >= raw.length) return false;
  try {
    return gunzipSync(member).equals(raw);
  } catch {
    return false;
  }
}
