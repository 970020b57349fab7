// The stored form of bytes: one byte for the encoding, then the bytes or their zstd frame if that is shorter. LangGraph
// stores each value twice (write and channel); compression makes up for that.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { LazarusError } from "../../platform/errors.ts";

const PLAIN = 0;
const ZSTD = 1;
/** Compression takes 0.1 ms, which does not pay off for short values. */
const MIN_COMPRESS_BYTES = 512;

/** The error for an unreadable graph checkpoint. */
export function damagedGraph(what: string, cause?: unknown): LazarusError {
  return new LazarusError("RUN_STORE_DAMAGED", `a graph checkpoint is damaged: ${what}`, {
    hint: "restore the database from a checkpoint of its cell: lazarus checkpoints",
    cause,
  });
}

/** Encodes bytes for storage. */
export function pack(bytes: Uint8Array): Uint8Array {
  if (bytes.length >= MIN_COMPRESS_BYTES) {
    const packed = zstdCompressSync(bytes);
    if (packed.length < bytes.length * 0.9) return Buffer.concat([Buffer.of(ZSTD), packed]);
  }
  return Buffer.concat([Buffer.of(PLAIN), bytes]);
}

/** Decodes stored bytes. Throws RUN_STORE_NEWER for an unknown encoding. */
export function unpack(stored: Uint8Array): Uint8Array {
  const bytes = stored.subarray(1);
  switch (stored[0]) {
    case PLAIN:
      return bytes;
    case ZSTD:
      try {
        return zstdDecompressSync(bytes);
      } catch (error) {
        throw damagedGraph("its compressed bytes cannot be decompressed", error);
      }
    default:
      throw new LazarusError(
        "RUN_STORE_NEWER",
        `a graph checkpoint has encoding ${stored[0]}, which this version does not know`,
        {
          hint: "upgrade Lazarus on this machine: npm install lazarus@latest",
        },
      );
  }
}
