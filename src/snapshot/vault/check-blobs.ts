// Checks the blobs of a checkpoint and reports what is damaged. A quick check covers the digests of manifest and config,
// the presence, size and table of contents of each layer, and the tree that the tables describe. A deep check
// reads every byte of every layer once and compares it with the digests of the layer, of its tar stream and of every file.
// Read-only; each blob is checked once.
import { createHash, type Hash } from "node:crypto";
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { LazarusError, messageOf, systemErrorCode } from "../../platform/errors.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { createContinuedChecker } from "./check-continued.ts";
import { createTree, EMPTY_SHA256, findFaults, type GrowingTree } from "./check-tree.ts";
import { codecOf } from "./codec.ts";
import type { Layer } from "./layer-reader.ts";
import { readToc } from "./layer-table.ts";
import { type Checkpoint, type LayerRef, layerSource, openLayerOf, readCheckpoint } from "./manifest.ts";
import type { Toc } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";
import type { Vault } from "./vault.ts";

/** Damage to one object of a vault. */
export interface Fault {
  /** "layer sha256:…", "manifest sha256:…", "record sha256:…", "index.json" */
  readonly object: string;
  readonly problem: string;
  /** The first few files whose bytes are damaged, if known. */
  readonly paths: readonly string[];
}

export interface Checker {
  /** The faults of a checkpoint; empty when it is intact. */
  check(ref: CheckpointRef): Promise<readonly Fault[]>;
  /** Checked so far. */
  readonly bytes: number;
  readonly blobs: number;
}

export interface CheckOptions {
  readonly deep: boolean;
  readonly onBytes?: (count: number) => void;
  readonly signal?: AbortSignal | undefined;
}

const MAX_PATHS = 10;
const CHUNK_BYTES = 1 << 20;
const YIELD_BYTES = 32 << 20;

export function createChecker(vault: Vault, options: CheckOptions): Checker {
  const layers = new Map<string, Promise<readonly Fault[]>>();
  const manifests = new Map<string, readonly Fault[] | Checkpoint>();
  const trees = createTreeChecker(vault);
  const continued = createContinuedChecker(vault);
  const documents = new Set<string>();
  let bytes = 0;
  let blobs = 0;
  const count = (size: number) => {
    bytes += size;
    options.onBytes?.(size);
  };

  const manifestOf = (ref: CheckpointRef): readonly Fault[] | Checkpoint => {
    try {
      const checkpoint = readCheckpoint(vault, ref);
      const size = statSync(vault.blobPath(ref.manifest)).size;
      for (const digest of checkpoint.documents) documents.add(digest);
      count(size);
      if (size === ref.manifestSize) return checkpoint;
      return [fault(documentOf(ref), `has ${size} bytes; the index says ${ref.manifestSize}`)];
    } catch (error) {
      if (!(error instanceof LazarusError)) throw error;
      const blob = error.details.blob;
      const isOwn = blob === undefined || blob === ref.manifest;
      // A record may build on records, a manifest and a config.
      const other = ref.isRecord ? "document" : "config";
      return [fault(isOwn ? documentOf(ref) : `${other} ${String(blob)}`, error.message)];
    }
  };

  const layerFaults = async (layer: LayerRef): Promise<readonly Fault[]> => {
    const object = `layer ${layer.digest}`;
    blobs += 1;
    let size: number;
    try {
      size = statSync(vault.findBlob(layer.digest)).size;
    } catch (error) {
      return [
        fault(object, systemErrorCode(error) === "ENOENT" ? "is missing" : `cannot be read (${error})`),
      ];
    }
    const faults: Fault[] = [];
    if (!vault.has(layer.digest)) faults.push(fault(object, "is damaged and was set aside"));
    if (size !== layer.size) faults.push(fault(object, `has ${size} bytes; its manifest says ${layer.size}`));
    try {
      using open = openLayerOf(vault, layer);
      trees.know(layer, open.toc);
      if (options.deep) faults.push(...(await readDeep(vault, layer, open, count, options.signal)));
      else count(open.toc.entries.length);
    } catch (error) {
      if (!(error instanceof LazarusError) || error.kind === "interrupted") throw error;
      faults.push(fault(object, error.message));
    }
    return faults;
  };

  const continuedFaults = ({ ref, layers }: Checkpoint): Fault[] => {
    const damaged = continued.check(layers);
    if (damaged.length === 0) return [];
    const problem = `${damaged.length} continued files do not match their digest`;
    return [{ ...fault(documentOf(ref), problem), paths: damaged.slice(0, MAX_PATHS) }];
  };

  return {
    async check(ref) {
      const known = manifests.get(ref.manifest) ?? manifestOf(ref);
      manifests.set(ref.manifest, known);
      if (!("layers" in known)) return known;
      const faults: Fault[] = [];
      for (const layer of known.layers) {
        const pending = layers.get(layer.digest) ?? layerFaults(layer);
        layers.set(layer.digest, pending);
        faults.push(...(await pending));
      }
      if (faults.length > 0) return faults;
      const broken = trees.check(known);
      return broken.length > 0 || !options.deep ? broken : continuedFaults(known);
    },
    get bytes() {
      return bytes;
    },
    get blobs() {
      return blobs + documents.size;
    },
  };
}

/** Checks the trees of checkpoints; one that adds layers to the previous one takes only the time of those layers. */
function createTreeChecker(vault: Vault): {
  know(layer: LayerRef, toc: Toc): void;
  check(checkpoint: Checkpoint): Fault[];
} {
  const tables = new Map<string, Toc>();
  const faultsOf = new Map<string, Fault[]>();
  let tree: GrowingTree = createTree();
  let applied: readonly string[] = [];
  return {
    know: (layer, toc) => tables.set(layer.digest, toc),
    check({ ref, layers }) {
      const known = faultsOf.get(ref.manifest);
      if (known !== undefined) return known;
      const digests = layers.map(({ digest }) => digest);
      if (!applied.every((digest, i) => digest === digests[i])) {
        tree = createTree();
        applied = [];
      }
      const upper = layers
        .slice(applied.length)
        .map((layer) => tables.get(layer.digest) ?? readToc(layerSource(vault, layer)));
      const found = findFaults(tree, upper);
      tables.clear();
      // What is built on a faulty tree has its faults too: the next one is checked from its lowest layer.
      if (found.length > 0) tree = createTree();
      else for (const toc of upper) tree.apply(toc);
      applied = found.length > 0 ? [] : digests;
      const problem = `describes a tree that cannot be restored: ${JSON.stringify(found[0]?.path)} ${found[0]?.problem}`;
      const faults =
        found.length === 0
          ? []
          : [
              {
                ...fault(documentOf(ref), problem),
                paths: found.slice(0, MAX_PATHS).map(({ path }) => path),
              },
            ];
      faultsOf.set(ref.manifest, faults);
      return faults;
    },
  };
}

/** The first intact checkpoint of `refs`. */
export async function findIntact(
  vault: Vault,
  refs: readonly CheckpointRef[],
  options: CheckOptions,
): Promise<CheckpointRef | undefined> {
  const checker = createChecker(vault, options);
  for (const ref of refs) if ((await checker.check(ref)).length === 0) return ref;
  return undefined;
}

async function readDeep(
  vault: Vault,
  ref: LayerRef,
  layer: Layer,
  count: (size: number) => void,
  signal: AbortSignal | undefined,
): Promise<Fault[]> {
  const codec = codecOf(ref.mediaType)!;
  const whole = createHash("sha256");
  const raw = createHash("sha256");
  const files = createFileHasher(layer.toc.entries);
  const faults: Fault[] = [];
  const object = `layer ${ref.digest}`;
  let sinceYield = 0;
  const onRead = async (size: number) => {
    count(size);
    sinceYield += size;
    if (sinceYield < YIELD_BYTES) return;
    sinceYield = 0;
    await yieldToEventLoop();
    if (signal?.aborted)
      throw new LazarusError("INTERRUPTED", "the verification was interrupted; nothing was changed");
  };
  for (const [i, member] of layer.toc.members.entries()) {
    const stored = layer.readMember(i);
    whole.update(stored);
    try {
      const bytes = codec.decompress(stored, member.raw);
      if (bytes.length !== member.raw) throw new Error(`${bytes.length} bytes instead of ${member.raw}`);
      raw.update(bytes);
      files.feed(bytes);
    } catch (error) {
      const message = messageOf(error);
      faults.push(fault(object, `member ${i + 1} cannot be decompressed (${message})`));
      files.skip(member.raw);
    }
    await onRead(stored.length);
  }
  hashTail(vault.findBlob(ref.digest), layer.membersLength, whole);
  const digest = `sha256:${whole.digest("hex")}`;
  if (digest !== ref.digest) faults.push(fault(object, `hashes to ${digest}`));
  else if (`sha256:${raw.digest("hex")}` !== ref.diffId)
    faults.push(fault(object, "is intact, but its tar stream does not match the digest in the config"));
  const damaged = files.end();
  if (damaged.length > 0)
    faults.push({
      ...fault(object, `${damaged.length} files do not match their digest`),
      paths: damaged.slice(0, MAX_PATHS),
    });
  return faults;
}

/** Hashes what follows the members: the table of contents and the footer. */
function hashTail(path: string, from: number, hash: Hash): void {
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let position = from;
    for (;;) {
      const length = readSync(fd, buffer, 0, buffer.length, position);
      if (length === 0) return;
      hash.update(buffer.subarray(0, length));
      position += length;
    }
  } finally {
    closeSync(fd);
  }
}

/** Checks the digest of every file while the raw stream of its layer is read. */
export function createFileHasher(entries: readonly TocEntry[]): {
  feed(raw: Uint8Array): void;
  /** These bytes could not be read: the files in them are damaged. */
  skip(length: number): void;
  /** Paths of damaged files. */
  end(): string[];
} {
  const damaged: string[] = [];
  const pending: (TocEntry & { at: number; length: number })[] = [];
  for (const entry of entries) {
    // Its digest is that of the whole file (check-continued.ts).
    if (entry.after !== undefined) continue;
    if (entry.at !== undefined) pending.push({ ...entry, at: entry.at, length: entry.length ?? entry.size });
    else if (entry.type === "file" && entry.sha256 !== EMPTY_SHA256) damaged.push(entry.path);
  }
  pending.sort((a, b) => a.at - b.at);
  let next = 0;
  let position = 0;
  let hash: Hash | undefined;
  let digest = "";
  const advance = (length: number, raw: Uint8Array | undefined) => {
    const end = position + length;
    while (next < pending.length) {
      const { at, length: size } = pending[next]!;
      if (at >= end) break;
      hash ??= createHash("sha256");
      const from = Math.max(at, position);
      const to = Math.min(at + size, end);
      if (raw !== undefined && from < to) hash.update(raw.subarray(from - position, to - position));
      if (at + size > end) break;
      digest = hash.digest("hex");
      hash = undefined;
      // Hard links share their bytes.
      do {
        if (pending[next]!.sha256 !== digest) damaged.push(pending[next]!.path);
        next += 1;
      } while (next < pending.length && pending[next]!.at === at);
    }
    position = end;
  };
  return {
    feed: (raw) => advance(raw.length, raw),
    skip: (length) => advance(length, undefined),
    end: () => [...damaged, ...pending.slice(next).map(({ path }) => path)],
  };
}

function documentOf({ manifest, isRecord }: CheckpointRef): string {
  return `${isRecord ? "record" : "manifest"} ${manifest}`;
}

function fault(object: string, problem: string): Fault {
  return { object, problem, paths: [] };
}
