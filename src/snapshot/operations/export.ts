// Writes a checkpoint as a plain .tar.gz that `tar xzf` turns back into the cell: PAX headers, hard links, holes, xattrs.
// Streams, so memory does not grow with the checkpoint. The file gets its name only when it is complete and durable
// (INV-1).
import { basename, dirname, join } from "node:path";
import { readHistoryBytes } from "../../effects/merge-history.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import { writeCheckpointTar } from "../archive/checkpoint-tar.ts";
import { effectComments } from "../archive/effect-comments.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { effectsPosition } from "../restore/effects.ts";
import { WHOLE_CELL } from "../restore/scope.ts";
import { skippedPaths } from "../restore/shortfalls.ts";
import { encodeGlobalComment } from "../tar/header.ts";
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
  /** Namespaces of the extended attributes in it, such as "user". */
  readonly xattrs: ReadonlySet<string>;
  /** Paths that the archive does not have, because they were skipped when the checkpoint was taken. */
  readonly notSaved: readonly Flaw[];
}

/** Concatenated gzip members are one valid gzip file. */
const MEMBER_BYTES = 1 << 20;

/** Passes the archive to `write`, piece by piece. */
export async function exportCheckpoint(
  context: MissionContext,
  ref: CheckpointRef,
  write: (bytes: Uint8Array) => void,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const { layers, metadata } = readCheckpoint(context.vault, ref);
  using contents = openContents(context.vault, layers);
  const archive = createArchive(write);
  archive.add(encodeGlobalComment(`lazarus checkpoint ${ref.id} of ${context.mission}`));
  const effects = {
    bytes: readHistoryBytes(context.effects.file),
    position: effectsPosition(metadata),
    checkpoint: ref.id,
  };
  for (const comment of effectComments(effects)) archive.add(encodeGlobalComment(comment));
  const entries = await writeCheckpointTar(contents, archive.add, {
    what: "export",
    signal: options.signal,
    onProgress: (done, total) => context.onProgress({ phase: "exporting", done, total, unit: "bytes" }),
  });
  return {
    entries,
    ...archive.end(),
    xattrs: namespacesOf(contents),
    notSaved: skippedPaths(metadata, WHOLE_CELL),
  };
}

function namespacesOf({ listing }: Contents): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { xattrs = [] } of listing.values()) for (const [name] of xattrs) found.add(name.split(".")[0]!);
  return found;
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
