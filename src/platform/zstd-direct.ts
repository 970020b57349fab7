// Node's own zstd, called without the stream that node:zlib puts around it: one context that is kept, and output that
// goes where it is wanted. zlib makes a context and a buffer of half a megabyte for every member, which cost a tenth of
// the time and 80 MB. Where the program does not show these functions, zlib does the same work.
import { createRequire } from "node:module";
import zlib from "node:zlib";

/** Writes one zstd frame with a checksum into `out` and says how long it is; 0 when it does not fit. */
export type ZstdInto = (raw: Uint8Array, out: Uint8Array) => number;

let found: ZstdInto | null | undefined;

export function zstdDirect(): ZstdInto | undefined {
  if (found === undefined) found = load() ?? null;
  return found ?? undefined;
}

function load(): ZstdInto | undefined {
  try {
    const program = createRequire(import.meta.url)("koffi").load(null);
    const create = program.func("void *ZSTD_createCCtx()");
    const setParameter = program.func("size_t ZSTD_CCtx_setParameter(void *context, int name, int value)");
    const compress = program.func(
      "size_t ZSTD_compress2(void *context, void *out, size_t room, const void *in, size_t length)",
    );
    const isError = program.func("uint ZSTD_isError(size_t code)");
    const context = create();
    if (context === null) return undefined;
    const { ZSTD_c_compressionLevel, ZSTD_c_checksumFlag } = zlib.constants;
    for (const name of [ZSTD_c_compressionLevel, ZSTD_c_checksumFlag])
      if (isError(setParameter(context, name, 1)) !== 0) return undefined;
    return (raw, out) => {
      const length = compress(context, out, out.length, raw, raw.length);
      return isError(length) === 0 ? Number(length) : 0;
    };
  } catch {
    // No koffi here, or a Node that keeps its functions to itself.
    return undefined;
  }
}
