// Writes a checkpoint as a plain .tar.gz that `tar xzf` turns back into the cell: PAX headers, hard links, holes, xattrs.
// Streams, so memory does not grow with the checkpoint. The file gets its name only when it is complete and durable
// (INV-1).
import { basename, dirname, join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { readHistoryBytes } from "../../effects/travel.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import { effectComments } from "../archive/effect-comments.ts";
import type { MissionContext } from "../mission-context.ts";
import { type CheckpointRef, type Entry, type Flaw, storedLength } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { effectsPosition } from "../restore/effects.ts";
import { WHOLE_CELL } from "../restore/scope.ts";
import { skippedPaths } from "../restore/shortfalls.ts";
import { BLOCK, encodeGlobalComment, encodeHeader, encodeSparseMap, padding } from "../tar/header.ts";
import { gzipCodec } from "../vault/codec.ts";
import { type Contents, openContents } from "../vault/contents.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { quarantineDamage } from "../vault/quarantine.ts";

export interface ExportOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ExportResult {
  readonly entries: number;
  /** Bytes of the tar stream, and of the archive. */
  readonly rawBytes: number;
  readonly bytes: number;
  /** Paths that the archive does not have, because they were skipped when the checkpoint was taken. */
  readonly notSaved: readonly Flaw[];
}

/** Concatenated gzip members are one valid gzip file. */
const MEMBER_BYTES = 1 << 20;
const YIELD_ENTRIES = 256;

/** Passes the archive to `write`, piece by piece. */
export async function exportCheckpoint(
  context: MissionContext,
  ref: CheckpointRef,
  write: (bytes: Uint8Array) => void,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const { layers, metadata } = readCheckpoint(context.vault, ref);
  using contents = openContents(context.vault, layers);
  const entries = [...contents.listing.values()].sort((a, b) => comparePaths(a.path, b.path));
  const total = entries.reduce((sum, { size }) => sum + size, 0);
  const archive = createArchive(write);
  const leaders = new Map<string, string>();
  archive.add(encodeGlobalComment(`lazarus checkpoint ${ref.id} of ${context.mission}`));
  const effects = {
    bytes: readHistoryBytes(context.effects.file),
    position: effectsPosition(metadata),
    checkpoint: ref.id,
  };
  for (const comment of effectComments(effects)) archive.add(encodeGlobalComment(comment));
  let done = 0;
  for (const [i, entry] of entries.entries()) {
    addEntry(archive, contents, entry, leaders);
    done += entry.size;
    context.onProgress({ phase: "exporting", done, total, unit: "bytes" });
    if (i % YIELD_ENTRIES !== 0) continue;
    await yieldToEventLoop();
    if (options.signal?.aborted) throw new LazarusError("INTERRUPTED", "the export was interrupted");
  }
  archive.add(Buffer.alloc(2 * BLOCK));
  return { entries: entries.length, ...archive.end(), notSaved: skippedPaths(metadata, WHOLE_CELL) };
}

/** Writes the archive to a file, atomically. */
export async function exportToFile(
  context: MissionContext,
  ref: CheckpointRef,
  file: string,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const { disk, ids } = context.machine;
  const temporary = join(dirname(file), `.${basename(file)}.${randomText(ids, 6)}.tmp`);
  const failed = (error: unknown) => asLazarusError(error, `writing ${file}`, dirname(file));
  let fd: number;
  try {
    fd = disk.create(temporary, 0o600);
  } catch (error) {
    throw failed(error);
  }
  try {
    let result: ExportResult;
    try {
      result = await exportCheckpoint(context, ref, (bytes) => disk.write(fd, bytes), options);
      crashPoint("snapshot.export.written");
      disk.fsync(fd);
    } finally {
      disk.close(fd);
    }
    disk.rename(temporary, file);
    disk.fsyncDirectory(dirname(file));
    return result;
  } catch (error) {
    try {
      disk.unlink(temporary);
    } catch {}
    quarantineDamage(context.vault, error);
    throw failed(error);
  }
}

function addEntry(archive: Archive, contents: Contents, entry: Entry, leaders: Map<string, string>): void {
  const leader = entry.group === undefined ? undefined : leaders.get(entry.group);
  if (leader !== undefined) {
    archive.add(encodeHeader(entry, { linkTo: leader, storedSize: 0, plainNames: true }));
    return;
  }
  if (entry.group !== undefined) leaders.set(entry.group, entry.path);
  const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
  const storedSize = map.length + storedLength(entry);
  archive.add(encodeHeader(entry, { storedSize, plainNames: true }));
  archive.add(map);
  if (entry.type === "file") contents.read(entry, archive.add);
  archive.add(Buffer.alloc(padding(storedSize)));
}

interface Archive {
  add(raw: Uint8Array): void;
  end(): { rawBytes: number; bytes: number };
}

function createArchive(write: (bytes: Uint8Array) => void): Archive {
  const member = Buffer.allocUnsafe(MEMBER_BYTES);
  let filled = 0;
  let rawBytes = 0;
  let bytes = 0;
  const flush = () => {
    if (filled === 0) return;
    const stored = gzipCodec.compress(member.subarray(0, filled));
    write(stored);
    bytes += stored.length;
    filled = 0;
  };
  return {
    add(raw) {
      rawBytes += raw.length;
      for (let at = 0; at < raw.length; ) {
        const part = raw.subarray(at, at + MEMBER_BYTES - filled);
        member.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled === MEMBER_BYTES) flush();
      }
    },
    end() {
      flush();
      return { rawBytes, bytes };
    },
  };
}
