// Bytes as they are stored: a first byte that says how, then the bytes themselves or their zstd frame when that is
// shorter. A step of 2 KB is stored twice by LangGraph's own design (write and value); packing takes that back.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { LazarusError } from "../../platform/errors.ts";

const PLAIN = 0;
const ZSTD = 1;
/** A frame takes 0.1 ms to make: too much for the few bytes that it saves of a short text. */
const WORTH_PACKING = 512;

/** What is said of graph checkpoints that cannot be read. */
export function damagedGraph(what: string, cause?: unknown): LazarusError {
  return new LazarusError("RUN_STORE_DAMAGED", `a graph checkpoint is damaged: ${what}`, {
    hint: "restore the database from a checkpoint of its cell: lazarus checkpoints",
    cause,
  });
}

/** Bytes as they are stored. */
export function pack(bytes: Uint8Array): Uint8Array {
  if (bytes.length >= WORTH_PACKING) {
    const packed = zstdCompressSync(bytes);
    if (packed.length < bytes.length * 0.9) return Buffer.concat([Buffer.of(ZSTD), packed]);
  }
  return Buffer.concat([Buffer.of(PLAIN), bytes]);
}

/** The bytes again. Throws RUN_STORE_NEWER for a way of packing that is not known. */
export function unpack(stored: Uint8Array): Uint8Array {
  const bytes = stored.subarray(1);
  switch (stored[0]) {
    case PLAIN:
      return bytes;
    case ZSTD:
      try {
        return zstdDecompressSync(bytes);
      } catch (error) {
        throw damagedGraph("its packed bytes do not unpack", error);
      }
    default:
      throw new LazarusError(
        "RUN_STORE_NEWER",
        `a graph checkpoint is packed in way ${stored[0]}, which is unknown here`,
        {
          hint: "upgrade Lazarus on this machine: npm install lazarus@latest",
        },
      );
  }
}
