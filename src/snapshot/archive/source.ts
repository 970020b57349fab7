// Reads the tar stream of an import: from an archive (plain, gzip or zstd), or from one image of an OCI layout, whose
// layers are verified while they are read. Limits are enforced on the stream, so a bomb is refused before it fills the disk.
import { createHash } from "node:crypto";
import { closeSync, createReadStream, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { codecOf } from "../vault/codec.ts";
import { RECORD_TYPE } from "../vault/index-json.ts";
import { openLayer } from "../vault/layer-reader.ts";

export interface ArchiveLimits {
  /** Bytes of the inflated archive, all layers together. */
  readonly maxBytes: number;
  /** Inflated bytes for each compressed one; 0 means no limit. */
  readonly maxRatio: number;
  readonly maxEntries: number;
}

/** A cell of text compresses about 10 to 1; deflate at most 1,032 to 1. */
export const DEFAULT_LIMITS: ArchiveLimits = { maxBytes: 2 ** 40, maxRatio: 200, maxEntries: 2_000_000 };

/** The ratio is checked only above this size. */
const RATIO_MIN_BYTES = 64 << 20;
const JSON_LIMIT_BYTES = 64 << 20;

/** Counts inflated bytes over all layers of an import. */
export interface Meter {
  inflated(count: number, compressedSoFar: number): void;
}

export function createMeter(limits: ArchiveLimits, onBytes: (total: number) => void): Meter {
  let total = 0;
  return {
    inflated(count, compressed) {
      total += count;
      onBytes(compressed);
      if (total > limits.maxBytes)
        throw bomb(`more than ${limits.maxBytes} bytes`, "if you trust it: --max-bytes BYTES");
      const ratio = total / Math.max(1, compressed);
      if (limits.maxRatio > 0 && total > RATIO_MIN_BYTES && ratio > limits.maxRatio)
        throw bomb(
          `${Math.round(ratio)} times its size`,
          "if you trust it: decompress it first, and import the .tar",
        );
    },
  };
}

function bomb(size: string, hint: string): LazarusError {
  return new LazarusError("LAYER_HOSTILE", `the archive was refused: it inflates to ${size}`, { hint });
}

/** Passes the raw tar bytes of an archive to `use`. */
export async function readArchive(
  file: string,
  meter: Meter,
  use: (chunk: Buffer) => void,
  options: {
    readonly digest?: string;
    readonly compressedBefore?: number;
    readonly signal?: AbortSignal | undefined;
  } = {},
): Promise<void> {
  const before = options.compressedBefore ?? 0;
  const inflate = inflaterFor(file);
  const source = createReadStream(file);
  const hash = options.digest === undefined ? undefined : createHash("sha256");
  let seen = 0;
  const counted = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      seen += chunk.length;
      hash?.update(chunk);
      yield chunk;
    }
  };
  const consume = async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      if (options.signal?.aborted)
        throw new LazarusError("INTERRUPTED", "the import was interrupted; nothing was imported");
      meter.inflated(chunk.length, before + seen);
      use(chunk);
    }
  };
  try {
    if (inflate === undefined) await pipeline(source, counted, consume);
    else await pipeline(source, counted, inflate, consume);
  } catch (error) {
    throw damagedArchive(file, error);
  }
  if (hash !== undefined && `sha256:${hash.digest("hex")}` !== options.digest)
    throw new LazarusError("LAYER_DAMAGED", `layer ${options.digest} does not match its digest`, {
      details: { layer: options.digest },
    });
}

function damagedArchive(file: string, error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (!code.startsWith("Z_") && !code.startsWith("ZSTD_") && code !== "ERR_BUFFER_TOO_LARGE") return error;
  return new LazarusError("LAYER_DAMAGED", `${file} cannot be decompressed: ${(error as Error).message}`, {
    hint: `check it with gzip -t ${file}, or download it again`,
    cause: error,
  });
}

/** Formats that are recognized but not read: how they start, and the command that unpacks them. */
const FOREIGN: readonly {
  readonly what: string;
  readonly magic: string;
  readonly convert: (file: string) => string;
}[] = [
  { what: "a bzip2", magic: "425a68", convert: (file) => `bzip2 -dc ${file} > cell.tar` },
  { what: "an xz", magic: "fd377a585a00", convert: (file) => `xz -dc ${file} > cell.tar` },
  { what: "a zip", magic: "504b0304", convert: (file) => `unzip -q ${file} -d cell && ${PACK}` },
  { what: "a 7-Zip", magic: "377abcaf271c", convert: (file) => `7z x ${file} -ocell && ${PACK}` },
];
const PACK = "tar -C cell -cf cell.tar .";

function refuseForeign(file: string, magic: Buffer): void {
  const found = FOREIGN.find((each) => magic.toString("hex").startsWith(each.magic));
  if (found === undefined) return;
  const message = `${file} is ${found.what} archive, which Lazarus does not read; nothing was imported`;
  const hint = `${found.convert(shellWord(file))} && lazarus import cell.tar --mission NAME`;
  throw new LazarusError("ARCHIVE_UNSUPPORTED", message, { hint });
}

function inflaterFor(file: string): Transform | undefined {
  const magic = Buffer.alloc(6);
  const fd = openSync(file, "r");
  try {
    readSync(fd, magic, 0, magic.length, 0);
  } finally {
    closeSync(fd);
  }
  refuseForeign(file, magic);
  if (magic[0] === 0x1f && magic[1] === 0x8b) return createGunzip();
  return magic.readUInt32LE(0) === 0xfd2fb528 ? createZstdDecompress() : undefined;
}

export interface ImageLayer {
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  readonly mediaType: string;
  readonly tocSha256: string | undefined;
}

export interface Image {
  readonly tag: string;
  readonly layers: readonly ImageLayer[];
  /** Whether Lazarus wrote the image: then names that look like whiteouts are escaped. */
  readonly isOurs: boolean;
  /** Its position in the effect history that a copied vault has. */
  readonly effectsPosition: number;
}

/** A point that builds on other documents of its vault, and has no image. */
export interface LivePoint {
  readonly tag: string;
  readonly isLivePoint: true;
}

export function isOciLayout(path: string): boolean {
  return existsSync(join(path, "oci-layout")) && existsSync(join(path, "index.json"));
}

/** Finds an image by its tag; default: the last image. Manifest and config are verified by digest. */
export function openImage(root: string, tag: string | undefined): Image | LivePoint {
  const damaged = (what: string) => new LazarusError("VAULT_DAMAGED", `the layout ${root} ${what}`);
  const parse = (bytes: Buffer, what: string): Record<string, unknown> => {
    try {
      return JSON.parse(bytes.toString("utf8"));
    } catch {
      throw damaged(`has ${what} that is not JSON`);
    }
  };
  const blob = (digest: unknown): string => {
    const match = /^sha256:([0-9a-f]{64})$/.exec(String(digest));
    if (match === null) throw damaged("names a blob that is not a sha256 digest");
    return join(root, "blobs", "sha256", match[1]!);
  };
  const read = (descriptor: unknown, what: string) => {
    const digest = (descriptor as { digest?: unknown } | undefined)?.digest;
    const path = blob(digest);
    if (!existsSync(path) || statSync(path).size > JSON_LIMIT_BYTES)
      throw damaged(`lacks ${what} ${String(digest)}`);
    const bytes = readFileSync(path);
    if (`sha256:${createHash("sha256").update(bytes).digest("hex")}` !== digest)
      throw damaged(`has a damaged ${what} ${String(digest)}`);
    return parse(bytes, what);
  };
  const index = parse(readFileSync(join(root, "index.json")), "an index.json");
  const images = (Array.isArray(index.manifests) ? index.manifests : []) as {
    mediaType?: string;
    annotations?: Record<string, string>;
  }[];
  const tagOf = (image: (typeof images)[number]) =>
    image.annotations?.["org.opencontainers.image.ref.name"] ?? "";
  const chosen = tag === undefined ? images.at(-1) : images.find((image) => tagOf(image) === tag);
  if (chosen === undefined) {
    throw new LazarusError("CHECKPOINT_UNKNOWN", `the layout ${root} has no image ${tag ?? "at all"}`, {
      hint: `it has: ${images.map(tagOf).slice(-5).join(", ") || "nothing"}`,
    });
  }
  if (chosen.mediaType === RECORD_TYPE) return { tag: tagOf(chosen), isLivePoint: true };
  const manifest = read(chosen, "a manifest");
  const config = read(manifest.config, "a config");
  if (!Array.isArray(manifest.layers)) throw damaged("has an image without layers");
  const layers = (manifest.layers as Record<string, unknown>[]).map((layer): ImageLayer => {
    const annotations = (layer.annotations ?? {}) as Record<string, string>;
    return {
      path: blob(layer.digest),
      digest: String(layer.digest),
      size: Number(layer.size),
      mediaType: String(layer.mediaType),
      tocSha256: annotations["vnd.lazarus.toc.sha256"],
    };
  });
  const ours = config.lazarus as { readonly effects?: { readonly position?: unknown } } | undefined;
  const position = Number(ours?.effects?.position ?? 0);
  const effectsPosition = Number.isSafeInteger(position) && position > 0 ? position : 0;
  return { tag: tagOf(chosen), layers, isOurs: ours !== undefined, effectsPosition };
}

/** Passes the raw tar bytes of one layer to `use`. Node reads only the first zstd frame, so our zstd layers are read by member. */
export async function readImageLayer(
  layer: ImageLayer,
  meter: Meter,
  use: (chunk: Buffer) => void,
  options: { readonly compressedBefore: number; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  if (!existsSync(layer.path)) throw new LazarusError("LAYER_DAMAGED", `layer ${layer.digest} is missing`);
  const codec = codecOf(layer.mediaType);
  if (codec?.name !== "zstd" || layer.tocSha256 === undefined) {
    await readArchive(layer.path, meter, use, { ...options, digest: layer.digest });
    return;
  }
  using open = openLayer({ path: layer.path, digest: layer.digest, codec, tocSha256: layer.tocSha256 });
  let compressed = options.compressedBefore;
  for (const [i, { raw, stored }] of open.toc.members.entries()) {
    compressed += stored;
    meter.inflated(raw, compressed);
    use(codec.decompress(open.readMember(i), raw));
  }
}
