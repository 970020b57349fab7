// Writes one layer: members in order, the end of the tar stream, the hidden table of contents, the footer, fsync. `finish`
// turns the file into a blob once it is durable (INV-1); an unfinished layer is removed by `abandon` or, after a crash, by
// the next process that takes the lock.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Disk } from "../../platform/disk.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { BLOCK } from "../tar/header.ts";
import type { Codec } from "./codec.ts";
import type { LayerRef } from "./manifest.ts";
import { createTocEncoder, type Member, TocError } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";
import type { Vault } from "./vault.ts";

export interface LayerWriter {
  /** Raw bytes so far: the offset of the next member in the tar stream. */
  readonly rawLength: number;
  readonly storedLength: number;
  /** Appends a member that contains the headers of `entries` entries. */
  append(stored: Uint8Array, raw: Uint8Array, entries: number): void;
  /** The same for bytes that are not compressed yet; nothing when there are none. */
  appendRaw(raw: Uint8Array, entries: number): void;
  /** Adds entries to the table of contents, in the order of their headers. */
  enter(entries: readonly TocEntry[]): void;
  /** Number of entries so far. */
  readonly entered: number;
  /** Completes the layer and adds it to the vault. */
  finish(removed: readonly string[]): LayerRef;
  /** Removes an unfinished layer; a no-op after `finish`. */
  abandon(): void;
}

export interface LayerWriterOptions {
  readonly codec: Codec;
  readonly localOnly: boolean;
  /** Name of the scratch file. */
  readonly name: string;
}

export function createLayerWriter(disk: Disk, vault: Vault, options: LayerWriterOptions): LayerWriter {
  const { codec } = options;
  const file = join(vault.scratch, options.name);
  const members: Member[] = [];
  const toc = createTocEncoder();
  const diffHash = createHash("sha256");
  const layerHash = createHash("sha256");
  let rawLength = 0;
  let storedLength = 0;
  const failing = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (error instanceof TocError)
        throw new LazarusError("CELL_UNREADABLE", `too many paths for one layer: ${error.message}`, {
          hint: "exclude directories that need not be saved with snapshot.exclude in the config file",
        });
      throw asLazarusError(error, `writing a layer into the vault ${vault.root}`, vault.root);
    }
  };
  const fd = failing(() => disk.create(file, 0o600));
  let open = true;
  let finished = false;
  const close = () => {
    if (!open) return;
    open = false;
    disk.close(fd);
  };
  const write = (bytes: Uint8Array) => {
    // The fd may have been reused.
    if (!open) throw new Error("this layer is closed");
    disk.write(fd, bytes);
    layerHash.update(bytes);
    storedLength += bytes.length;
  };
  const append = (stored: Uint8Array, raw: Uint8Array, entries: number) => {
    write(stored);
    diffHash.update(raw);
    rawLength += raw.length;
    members.push({ stored: stored.length, raw: raw.length, entries });
  };
  return {
    get rawLength() {
      return rawLength;
    },
    get storedLength() {
      return storedLength;
    },
    get entered() {
      return toc.count;
    },
    append: (stored, raw, entries) => failing(() => append(stored, raw, entries)),
    appendRaw: (raw, entries) => {
      if (raw.length > 0) failing(() => append(codec.compress(raw), raw, entries));
    },
    enter: toc.add,
    finish(removed) {
      return failing(() => {
        const end = Buffer.alloc(BLOCK * 2);
        append(codec.compress(end), end, 0);
        const table = toc.finish(members, removed);
        const hidden = codec.hide(table.packed);
        const footer = codec.encodeFooter({ tocOffset: storedLength, tocLength: hidden.length });
        write(hidden);
        write(footer);
        crashPoint("snapshot.layer.written");
        disk.fsync(fd);
        close();
        crashPoint("snapshot.layer.synced");
        const digest = `sha256:${layerHash.digest("hex")}`;
        vault.adopt(file, digest);
        finished = true;
        crashPoint("snapshot.layer.adopted");
        return {
          digest,
          size: storedLength,
          mediaType: options.localOnly ? codec.localMediaType : codec.mediaType,
          diffId: `sha256:${diffHash.digest("hex")}`,
          tocSha256: createHash("sha256").update(hidden).digest("hex"),
          tocBytes: table.bytes,
          ...(toc.isContinued && { isContinued: true as const }),
        };
      });
    },
    abandon() {
      if (finished) return;
      finished = true;
      // Frees the space of a partial layer on a full disk. Best effort: the original error matters more.
      for (const step of [close, () => disk.unlink(file)]) {
        try {
          step();
        } catch {}
      }
    },
  };
}
