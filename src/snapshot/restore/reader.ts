// Reads files' bytes out of layers by member, without the layers' tables: a restore worker is handed where the members
// lie and inflates each once. Every file is checked against its digest before or as its bytes are handed over.
import { createHash, hash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { LazarusError } from "../../platform/errors.ts";
import type { Entry } from "../model/entry.ts";
import { type Codec, codecOf } from "../vault/codec.ts";
import type { LayerRef } from "../vault/manifest.ts";
import type { Toc } from "../vault/toc.ts";
import { memberAt } from "../vault/toc.ts";
import type { Vault } from "../vault/vault.ts";
import type { LayerMembers } from "./batches.ts";

export interface Reader extends Disposable {
  /** The stored bytes of a file, in order. A file of one chunk is verified before `use` sees it. */
  read(entry: Entry, use: (chunk: Buffer) => void): void;
}

/** What a reader needs to know of the layers of a checkpoint, from their tables in the same order. */
export function describeMembers(
  vault: Vault,
  refs: readonly LayerRef[],
  tocs: readonly Toc[],
): LayerMembers[] {
  const layers = new Map<string, LayerMembers>();
  for (const [i, { digest, mediaType }] of refs.entries()) {
    const { members } = tocs[i]!;
    const stored = new Float64Array(members.length + 1);
    const raw = new Float64Array(members.length + 1);
    for (const [m, member] of members.entries()) {
      stored[m + 1] = stored[m]! + member.stored;
      raw[m + 1] = raw[m]! + member.raw;
    }
    layers.set(digest, { digest, path: vault.blobPath(digest), mediaType, stored, raw });
  }
  return [...layers.values()];
}

export function createReader(layers: readonly LayerMembers[]): Reader {
  const byDigest = new Map(layers.map((layer) => [layer.digest, layer]));
  const descriptors = new Map<string, number>();
  let cachedLayer: LayerMembers | undefined;
  let cachedIndex = -1;
  let cached: Buffer = Buffer.alloc(0);

  const inflate = (layer: LayerMembers, index: number): Buffer => {
    if (layer === cachedLayer && index === cachedIndex) return cached;
    let fd = descriptors.get(layer.digest);
    if (fd === undefined) {
      fd = openBlob(layer);
      descriptors.set(layer.digest, fd);
    }
    cached = inflateMember(layer, codecOf(layer.mediaType)!, fd, index);
    cachedLayer = layer;
    cachedIndex = index;
    return cached;
  };

  const chunks = (entry: Entry, use: (chunk: Buffer) => void) => {
    if (entry.location === undefined) return;
    const { at, length } = entry.location;
    const layer = byDigest.get(entry.location.layer)!;
    const end = at + length;
    if (end > layer.raw.at(-1)!) throw damagedLayer(layer.digest, "a file lies beyond its end");
    let index = memberAt(layer.raw, at);
    for (let from = at; from < end; index += 1) {
      const start = layer.raw[index]!;
      const part = inflate(layer, index).subarray(from - start, Math.min(end, layer.raw[index + 1]!) - start);
      if (part.length > 0) use(part);
      from += part.length;
    }
  };

  return {
    read(entry, use) {
      if (liesInOneMember(entry, byDigest)) {
        chunks(entry, (chunk) => {
          if (hash("sha256", chunk, "hex") !== entry.sha256) throw damagedFile(entry);
          use(chunk);
        });
        return;
      }
      const digest = createHash("sha256");
      chunks(entry, (chunk) => {
        digest.update(chunk);
        use(chunk);
      });
      if (digest.digest("hex") !== entry.sha256) throw damagedFile(entry);
    },
    [Symbol.dispose]() {
      for (const fd of descriptors.values()) closeSync(fd);
      descriptors.clear();
    },
  };
}

/** Whether the file has bytes and they all lie in one member. */
function liesInOneMember({ location }: Entry, byDigest: ReadonlyMap<string, LayerMembers>): boolean {
  if (location === undefined || location.length === 0) return false;
  const { raw } = byDigest.get(location.layer)!;
  return raw[memberAt(raw, location.at) + 1]! >= location.at + location.length;
}

function inflateMember(layer: LayerMembers, codec: Codec, fd: number, index: number): Buffer {
  const packed = Buffer.allocUnsafe(layer.stored[index + 1]! - layer.stored[index]!);
  const rawLength = layer.raw[index + 1]! - layer.raw[index]!;
  let done = 0;
  while (done < packed.length) {
    const count = readSync(fd, packed, done, packed.length - done, layer.stored[index]! + done);
    if (count === 0) throw damagedLayer(layer.digest, "it was cut short");
    done += count;
  }
  let raw: Buffer;
  try {
    raw = codec.decompress(packed, rawLength);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw damagedLayer(layer.digest, `member ${index} does not inflate (${why})`);
  }
  if (raw.length !== rawLength) {
    throw damagedLayer(
      layer.digest,
      `member ${index} inflates to ${raw.length} bytes instead of ${rawLength}`,
    );
  }
  return raw;
}

function openBlob(layer: LayerMembers): number {
  try {
    return openSync(layer.path, "r");
  } catch (error) {
    throw new LazarusError("LAYER_DAMAGED", `layer ${layer.digest} cannot be read from the vault`, {
      details: { layer: layer.digest },
      cause: error,
    });
  }
}

function damagedLayer(digest: string, what: string): LazarusError {
  return new LazarusError("LAYER_DAMAGED", `layer ${digest} is damaged: ${what}`, {
    details: { layer: digest },
  });
}

function damagedFile(entry: Entry): LazarusError {
  return new LazarusError(
    "CHECKPOINT_DAMAGED",
    `${JSON.stringify(entry.path)} does not match its digest in the vault`,
    {
      details: { path: entry.path },
    },
  );
}
