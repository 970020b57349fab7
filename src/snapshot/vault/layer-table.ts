// Reads the table of contents at the end of a layer file. Layers are hostile input: every length is checked against the
// file, and the table against the digest in the manifest, before anything is decoded.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { LazarusError, refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import type { Codec } from "./codec.ts";
import { decodeToc, TOC_LIMIT_BYTES, type Toc, TocError, type TocVisitor, visitToc } from "./toc.ts";

export interface LayerSource {
  readonly path: string;
  readonly digest: string;
  readonly codec: Codec;
  /** Hex digest of the packed table from the manifest. */
  readonly tocSha256: string | undefined;
  /** Inflated length of the table from the manifest; layers of older versions have none. */
  readonly tocBytes?: number | undefined;
}

/** A table as stored, verified against its digest, not yet decoded. */
export interface PackedToc {
  readonly payload: Buffer;
  /** Where the table begins in the layer file, which is where the members end. */
  readonly offset: number;
}

/** Reads only the end of the layer file: finds damage in a hundredth of the time that decoding takes. */
export function readPackedToc(source: LayerSource): PackedToc {
  const { codec, digest, tocSha256 } = source;
  const fd = openLayerFile(source.path, digest);
  try {
    const { size } = fstatSync(fd);
    const footer =
      size < codec.footerLength
        ? undefined
        : codec.decodeFooter(readAt(fd, size - codec.footerLength, codec.footerLength));
    if (footer === undefined)
      throw damagedLayer(digest, "it has no footer; it is truncated or not a layer of Lazarus");
    if (footer.tocOffset + footer.tocLength !== size - codec.footerLength)
      throw damagedLayer(digest, "its footer points outside the file");
    const hidden = readAt(fd, footer.tocOffset, footer.tocLength);
    if (tocSha256 !== undefined && createHash("sha256").update(hidden).digest("hex") !== tocSha256)
      throw damagedLayer(digest, "its table of contents does not match its digest");
    return { payload: reveal(codec, hidden, digest), offset: footer.tocOffset };
  } finally {
    closeSync(fd);
  }
}

function reveal(codec: Codec, hidden: Buffer, digest: string): Buffer {
  try {
    return codec.reveal(hidden);
  } catch {
    throw damagedLayer(digest, "its table of contents cannot be read");
  }
}

/** Decodes the table; with `only`, just the rows of those paths and of all hard links. */
export function unpackToc(source: LayerSource, packed: PackedToc, only?: ReadonlySet<string>): Toc {
  return decode(source, packed, (limit) => decodeToc(packed.payload, limit, only));
}

/** Reads the table without keeping its rows. */
export function scanToc(source: LayerSource, visitor: TocVisitor): Pick<Toc, "members"> {
  const packed = readPackedToc(source);
  return decode(source, packed, (limit) => ({ members: visitToc(packed.payload, limit, visitor) }));
}

function decode<T extends Pick<Toc, "members">>(
  { digest, tocBytes = TOC_LIMIT_BYTES }: LayerSource,
  { offset }: PackedToc,
  read: (limitBytes: number) => T,
): T {
  let toc: T;
  try {
    toc = read(Math.min(tocBytes, TOC_LIMIT_BYTES));
  } catch (error) {
    const reason = error instanceof TocError ? error.message : "its table of contents cannot be read";
    throw damagedLayer(digest, reason);
  }
  const length = toc.members.reduce((sum, { stored }) => sum + stored, 0);
  if (length !== offset) throw damagedLayer(digest, "the sizes of its members do not add up");
  return toc;
}

export function readToc(source: LayerSource): Toc {
  return unpackToc(source, readPackedToc(source));
}

export function openLayerFile(path: string, digest: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    // A process without free descriptors must not report an intact layer as damaged.
    refuseExhaustion(error, `reading layer ${digest}`, path);
    const problem = systemErrorCode(error) === "ENOENT" ? "is missing from" : "cannot be read from";
    throw new LazarusError("LAYER_DAMAGED", `layer ${digest} ${problem} the vault`, {
      hint: VERIFY_HINT,
      details: { layer: digest },
      cause: error,
    });
  }
}

export function damagedLayer(digest: string, problem: string): LazarusError {
  return new LazarusError("LAYER_DAMAGED", `layer ${digest} is damaged: ${problem}`, {
    hint: VERIFY_HINT,
    details: { layer: digest },
  });
}

export const VERIFY_HINT = "lazarus verify --deep, which names the checkpoints that are still good";

/** Reads `length` bytes, or fewer when the file ends first. */
export function readAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const count = readSync(fd, buffer, done, length - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return buffer.subarray(0, done);
}
