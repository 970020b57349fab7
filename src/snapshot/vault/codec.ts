// The compression of layers, gzip or zstd. A layer is a sequence of members (gzip members, zstd frames) that inflate
// independently, followed by the table of contents in a form that standard readers skip, and by a footer of fixed size
// with the offset of the table. Pure.
import zlib from "node:zlib";
import { libdeflateGunzip, libdeflateGzip } from "../../platform/libdeflate.ts";

export interface Codec {
  readonly name: "gzip" | "zstd";
  readonly mediaType: string;
  /** For layers that are never pushed. */
  readonly localMediaType: string;
  readonly footerLength: number;
  compress(raw: Uint8Array): Buffer;
  /** For large members: the fastest implementation on this machine. The result is in `into`, if it fits there. */
  compressFast(raw: Uint8Array, into?: Buffer): Buffer;
  /** Inflates one member; never produces more than `rawLength` bytes. */
  decompress(member: Uint8Array, rawLength: number): Buffer;
  /** Wraps bytes so that standard readers skip them. */
  hide(payload: Uint8Array): Buffer;
  /** The inverse of `hide`. */
  reveal(hidden: Uint8Array): Buffer;
  encodeFooter(footer: Footer): Buffer;
  decodeFooter(bytes: Uint8Array): Footer | undefined;
}

/** Position of the hidden table of contents in the layer file. */
export interface Footer {
  readonly tocOffset: number;
  readonly tocLength: number;
}

const LEVEL = 1;
/** For small layers: a millisecond more makes them a tenth smaller. */
const SMALL_LEVEL = 6;
const SMALL_BYTES = 512 << 10;
const levelFor = (raw: Uint8Array) => (raw.length <= SMALL_BYTES ? SMALL_LEVEL : LEVEL);
const SAMPLE_BYTES = 4096;
const SAMPLES = 3;
/** Bits per byte; compressed, encrypted or random data has 7.95 in a sample of this size. */
const INCOMPRESSIBLE = 7.85;

/** One output buffer instead of 16 KiB chunks that are concatenated later. */
const singleBuffer = (raw: Uint8Array) => ({ chunkSize: Math.max(16_384, raw.length >> 1) });
/** When the output is sure to fit, zstd compresses in a single pass, a tenth faster. */
const singlePass = (raw: Uint8Array) => ({ chunkSize: raw.length + (raw.length >> 8) + 16_384 });

/** Estimates from a few samples whether compression is worthwhile. */
export function looksIncompressible(raw: Uint8Array): boolean {
  if (raw.length < SAMPLE_BYTES * SAMPLES * 2) return false;
  const stride = Math.floor((raw.length - SAMPLE_BYTES) / (SAMPLES - 1));
  for (let i = 0; i < SAMPLES; i += 1)
    if (entropyOf(raw, i * stride, SAMPLE_BYTES) < INCOMPRESSIBLE) return false;
  return true;
}

const counts = new Uint32Array(256);

function entropyOf(bytes: Uint8Array, start: number, length: number): number {
  counts.fill(0);
  for (let i = start; i < start + length; i += 1) counts[bytes[i]!]! += 1;
  let bits = 0;
  for (const count of counts) if (count > 0) bits -= (count / length) * Math.log2(count / length);
  return bits;
}

// gzip: the table is stored in the extra fields of empty members, like the footer of eStargz; every gunzip skips them.
const GZIP_EXTRA_LIMIT = 65_535 - 4;
const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff]);
const GZIP_EMPTY_BODY = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const GZIP_FRAME = GZIP_HEAD.length + 2 + 4 + GZIP_EMPTY_BODY.length;
const TOC_TAG = "LZ";
const FOOTER_TAG = "LF";
const FOOTER_BYTES = 24;
const FOOTER_MAGIC = 0x31_52_5a_4c; // "LZR1"

function gzipHidden(tag: string, payload: Uint8Array): Buffer {
  const lengths = Buffer.alloc(6);
  lengths.writeUInt16LE(payload.length + 4, 0);
  lengths.write(tag, 2, "latin1");
  lengths.writeUInt16LE(payload.length, 4);
  return Buffer.concat([GZIP_HEAD, lengths, payload, GZIP_EMPTY_BODY]);
}

function footerPayload({ tocOffset, tocLength }: Footer): Buffer {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  bytes.writeBigUInt64LE(BigInt(tocOffset), 0);
  bytes.writeBigUInt64LE(BigInt(tocLength), 8);
  bytes.writeUInt32LE(FOOTER_MAGIC, 16);
  bytes.writeUInt32LE(zlib.crc32(bytes.subarray(0, 20)), 20);
  return bytes;
}

function parseFooterPayload(bytes: Buffer): Footer | undefined {
  if (bytes.length !== FOOTER_BYTES || bytes.readUInt32LE(16) !== FOOTER_MAGIC) return undefined;
  if (bytes.readUInt32LE(20) !== zlib.crc32(bytes.subarray(0, 20))) return undefined;
  return { tocOffset: Number(bytes.readBigUInt64LE(0)), tocLength: Number(bytes.readBigUInt64LE(8)) };
}

export const gzipCodec: Codec = {
  name: "gzip",
  mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
  localMediaType: "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
  footerLength: GZIP_FRAME + FOOTER_BYTES,
  compress: (raw) => zlib.gzipSync(raw, { level: looksIncompressible(raw) ? 0 : levelFor(raw) }),
  compressFast(raw, into) {
    const isStored = looksIncompressible(raw);
    const fast = isStored ? undefined : libdeflateGzip()?.(raw, into);
    return (
      fast ?? move(zlib.gzipSync(raw, { level: isStored ? 0 : levelFor(raw), ...singleBuffer(raw) }), into)
    );
  },
  decompress(member, rawLength) {
    // For small members, loading libdeflate does not pay off. When it refuses a member, zlib reports the reason.
    const fast = rawLength <= SMALL_BYTES ? undefined : libdeflateGunzip()?.(member, rawLength);
    return fast ?? zlib.gunzipSync(member, outputBounds(rawLength));
  },
  hide(payload) {
    const parts: Buffer[] = [];
    for (let at = 0; at < payload.length; at += GZIP_EXTRA_LIMIT) {
      parts.push(gzipHidden(TOC_TAG, payload.subarray(at, at + GZIP_EXTRA_LIMIT)));
    }
    return Buffer.concat(parts);
  },
  reveal(hidden) {
    const bytes = asBuffer(hidden);
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = bytes.readUInt16LE(at + GZIP_HEAD.length + 4);
      const start = at + GZIP_HEAD.length + 6;
      parts.push(bytes.subarray(start, start + length));
      at += GZIP_FRAME + length;
    }
    return Buffer.concat(parts);
  },
  encodeFooter: (footer) => gzipHidden(FOOTER_TAG, footerPayload(footer)),
  decodeFooter(bytes) {
    const buffer = asBuffer(bytes);
    if (buffer.length !== GZIP_FRAME + FOOTER_BYTES) return undefined;
    if (buffer.toString("latin1", 12, 14) !== FOOTER_TAG) return undefined;
    return parseFooterPayload(buffer.subarray(16, 16 + FOOTER_BYTES));
  },
};

// zstd: the table is stored in skippable frames.
const ZSTD_SKIPPABLE = 0x184d2a5b;
const ZSTD_FRAME = 8;
const ZSTD_SKIPPABLE_LIMIT = 1 << 24;

function zstdHidden(payload: Uint8Array): Buffer {
  const head = Buffer.alloc(ZSTD_FRAME);
  head.writeUInt32LE(ZSTD_SKIPPABLE, 0);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

const ZSTD_PARAMS = { [zlib.constants.ZSTD_c_compressionLevel]: 1, [zlib.constants.ZSTD_c_checksumFlag]: 1 };

export const zstdCodec: Codec = {
  name: "zstd",
  mediaType: "application/vnd.oci.image.layer.v1.tar+zstd",
  localMediaType: "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
  footerLength: ZSTD_FRAME + FOOTER_BYTES,
  compress: (raw) => zlib.zstdCompressSync(raw, { params: ZSTD_PARAMS }),
  compressFast: (raw, into) =>
    move(zlib.zstdCompressSync(raw, { params: ZSTD_PARAMS, ...singlePass(raw) }), into),
  decompress: (member, rawLength) => zlib.zstdDecompressSync(member, outputBounds(rawLength)),
  hide(payload) {
    const parts: Buffer[] = [];
    for (let at = 0; at < payload.length; at += ZSTD_SKIPPABLE_LIMIT) {
      parts.push(zstdHidden(payload.subarray(at, at + ZSTD_SKIPPABLE_LIMIT)));
    }
    return Buffer.concat(parts);
  },
  reveal(hidden) {
    const bytes = asBuffer(hidden);
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = bytes.readUInt32LE(at + 4);
      parts.push(bytes.subarray(at + ZSTD_FRAME, at + ZSTD_FRAME + length));
      at += ZSTD_FRAME + length;
    }
    return Buffer.concat(parts);
  },
  encodeFooter: (footer) => zstdHidden(footerPayload(footer)),
  decodeFooter(bytes) {
    const buffer = asBuffer(bytes);
    if (buffer.length !== ZSTD_FRAME + FOOTER_BYTES || buffer.readUInt32LE(0) !== ZSTD_SKIPPABLE)
      return undefined;
    return parseFooterPayload(buffer.subarray(ZSTD_FRAME));
  },
};

export const CODECS: readonly Codec[] = [gzipCodec, zstdCodec];

export function codecFor(compression: Codec["name"]): Codec {
  return compression === "zstd" ? zstdCodec : gzipCodec;
}

export function codecOf(mediaType: string): Codec | undefined {
  return CODECS.find((codec) => codec.mediaType === mediaType || codec.localMediaType === mediaType);
}

export function isLocalOnly(mediaType: string): boolean {
  return CODECS.some((codec) => codec.localMediaType === mediaType);
}

const LARGEST_CHUNK = 8 << 20;

/** One output buffer per member: 30 % faster than the default chunks of 16 KiB. */
function outputBounds(rawLength: number): { maxOutputLength: number; chunkSize: number } {
  return { maxOutputLength: Math.max(1, rawLength), chunkSize: Math.min(rawLength + 1024, LARGEST_CHUNK) };
}

function move(bytes: Buffer, into: Buffer | undefined): Buffer {
  if (into === undefined || into.length < bytes.length) return bytes;
  bytes.copy(into);
  return into.subarray(0, bytes.length);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
