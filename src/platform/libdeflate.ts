// gzip through libdeflate where the machine has it (Debian's libdeflate0, Homebrew's libdeflate): 207 against 136 MB/s a
// core for sources and their tar headers, and 6 % smaller. Where it is absent, zlib does the same work.
import { createRequire } from "node:module";

/** Writes a gzip member into `out` and says how long it is; 0 when it does not fit. */
export type GzipInto = (raw: Uint8Array, out: Uint8Array) => number;

const NAMES = { linux: ["libdeflate.so.0"], darwin: ["libdeflate.0.dylib", "libdeflate.dylib"] };
/** The fastest that looks for matches at all. */
const LEVEL = 1;

let found: GzipInto | null | undefined;

export function libdeflateGzip(): GzipInto | undefined {
  if (found === undefined) found = load() ?? null;
  return found ?? undefined;
}

function load(): GzipInto | undefined {
  if (process.platform !== "linux" && process.platform !== "darwin") return undefined;
  for (const name of NAMES[process.platform]) {
    try {
      const library = createRequire(import.meta.url)("koffi").load(name);
      const allocate = library.func("void *libdeflate_alloc_compressor(int level)");
      const compress = library.func(
        "size_t libdeflate_gzip_compress(void *compressor, const void *in, size_t length, void *out, size_t room)",
      );
      const compressor = allocate(LEVEL);
      if (compressor === null) return undefined;
      return (raw, out) => Number(compress(compressor, raw, raw.length, out, out.length));
    } catch {
      // Not here under this name.
    }
  }
  return undefined;
}
