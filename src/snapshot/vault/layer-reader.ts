// Reads a layer through its table of contents: the table, and the bytes of any file, without inflating the rest.
// Layers are hostile input: every length is checked against the file before it is believed.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { LazarusError } from "../../platform/errors.ts";
import type { Codec } from "./codec.ts";
import { decodeToc, type Member, memberAt, type Toc, TocError } from "./toc.ts";

export interface Layer extends Disposable {
  readonly digest: string;
  readonly codec: Codec;
  readonly toc: Toc;
  /** Bytes of the compressed layer that hold members; the table follows. */
  readonly membersLength: number;
  /** The raw tar bytes [at, at + length), inflated member by member and handed over in order. */
  read(at: number, length: number, use: (chunk: Buffer) => void): void;
  /** One member as it is stored. */
  readMember(index: number): Buffer;
}

/** A table may be this many times larger than its packed form, and no larger. */
const TOC_EXPANSION_LIMIT = 64;
const TOC_LEAST_LIMIT = 1 << 20;

export interface LayerSource {
  readonly path: string;
  readonly digest: string;
  readonly codec: Codec;
  /** Hex digest of the packed table, as the manifest states it; the table is refused when it differs. */
  readonly tocSha256: string | undefined;
}

export function openLayer(source: LayerSource): Layer {
  const damaged = damageOf(source);
  const fd = openBlob(source.path, source.digest);
  try {
    const packed = readPacked(fd, source);
    const toc = unpackToc(source, packed);
    return createLayer(fd, source, toc, memberOffsets(toc.members), damaged);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** A layer's table as it is stored, checked against its digest, not yet decoded. */
export interface PackedToc {
  readonly payload: Buffer;
  /** Where it begins in the layer, which is where the members end. */
  readonly offset: number;
}

/** Looks at no more than the end of the layer: tells damage in a hundredth of the time that decoding takes. */
export function readPackedToc(source: LayerSource): PackedToc {
  const fd = openBlob(source.path, source.digest);
  try {
    return readPacked(fd, source);
  } finally {
    closeSync(fd);
  }
}

/** The table, or only the rows of the paths in `only` and of all hard links. */
export function unpackToc(source: LayerSource, packed: PackedToc, only?: ReadonlySet<string>): Toc {
  const damaged = damageOf(source);
  let toc: Toc;
  try {
    const limit = Math.max(TOC_LEAST_LIMIT, packed.payload.length * TOC_EXPANSION_LIMIT);
    toc = decodeToc(packed.payload, limit, only);
  } catch (error) {
    throw damaged(error instanceof TocError ? error.message : "its table of contents cannot be read");
  }
  if (memberOffsets(toc.members).stored.at(-1) !== packed.offset) throw damaged("its members do not add up");
  return toc;
}

function readPacked(fd: number, source: LayerSource): PackedToc {
  const { codec, tocSha256 } = source;
  const damaged = damageOf(source);
  const { size } = fstatSync(fd);
  const footer =
    size < codec.footerLength
      ? undefined
      : codec.decodeFooter(readAt(fd, size - codec.footerLength, codec.footerLength));
  if (footer === undefined) throw damaged("it has no footer; it was cut short or is not a layer of Lazarus");
  if (footer.tocOffset + footer.tocLength !== size - codec.footerLength)
    throw damaged("its footer points outside");
  const hidden = readAt(fd, footer.tocOffset, footer.tocLength);
  if (tocSha256 !== undefined && createHash("sha256").update(hidden).digest("hex") !== tocSha256)
    throw damaged("its table of contents does not match its digest");
  try {
    return { payload: codec.reveal(hidden), offset: footer.tocOffset };
  } catch {
    throw damaged("its table of contents cannot be read");
  }
}

function damageOf({ digest }: LayerSource): (what: string) => LazarusError {
  return (what) =>
    new LazarusError("LAYER_DAMAGED", `layer ${digest} is damaged: ${what}`, {
      hint: "lazarus verify --deep, which names the checkpoints that are still good",
      details: { layer: digest },
    });
}

interface Offsets {
  /** Where member i starts, in the file and in the raw stream; one more entry for the end. */
  readonly stored: readonly number[];
  readonly raw: readonly number[];
}

function memberOffsets(members: readonly Member[]): Offsets {
  const stored = [0];
  const raw = [0];
  for (const [i, member] of members.entries()) {
    stored.push(stored[i]! + member.stored);
    raw.push(raw[i]! + member.raw);
  }
  return { stored, raw };
}

function createLayer(
  fd: number,
  source: LayerSource,
  toc: Toc,
  offsets: Offsets,
  damaged: (what: string) => LazarusError,
): Layer {
  let cachedIndex = -1;
  let cached: Buffer = Buffer.alloc(0);
  const readMember = (index: number) => readAt(fd, offsets.stored[index]!, toc.members[index]!.stored);
  const inflate = (index: number): Buffer => {
    if (index === cachedIndex) return cached;
    const { raw } = toc.members[index]!;
    try {
      cached = source.codec.decompress(readMember(index), raw);
    } catch (error) {
      throw damaged(
        `member ${index} does not inflate (${error instanceof Error ? error.message : String(error)})`,
      );
    }
    if (cached.length !== raw)
      throw damaged(`member ${index} inflates to ${cached.length} bytes instead of ${raw}`);
    cachedIndex = index;
    return cached;
  };
  return {
    digest: source.digest,
    codec: source.codec,
    toc,
    membersLength: offsets.stored.at(-1)!,
    readMember,
    read(at, length, use) {
      if (at + length > offsets.raw.at(-1)!) throw damaged("a file lies beyond its end");
      let index = memberAt(offsets.raw, at);
      let from = at;
      const end = at + length;
      while (from < end) {
        const start = offsets.raw[index]!;
        const bytes = inflate(index).subarray(from - start, Math.min(end - start, toc.members[index]!.raw));
        if (bytes.length > 0) use(bytes);
        from += bytes.length;
        index += 1;
      }
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}

function openBlob(path: string, digest: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw new LazarusError("LAYER_DAMAGED", `layer ${digest} is missing from the vault`, {
      hint: "lazarus verify, which names the checkpoints that are still good",
      details: { layer: digest },
      cause: error,
    });
  }
}

function readAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const count = readSync(fd, buffer, done, length - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return buffer.subarray(0, done);
}
