// Copies files that are replaced as a whole, and databases through SQLite's own backup. A database cannot be redacted: its
// copy is kept in local-only layers (snapshot/path-patterns.ts).
import { lstatSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Disk } from "../../platform/disk.ts";
import type { Place, SessionFile } from "../adapter.ts";
import { putFile } from "./put-file.ts";
import { redactWhole } from "./redact.ts";
import { type OpenedFile, readRange, requireOwn, resolveOwn, SourceError } from "./source.ts";
import type { FileState, WholeState } from "./state.ts";

/** Copies a consistent state of a database to a new file; returns the reason when SQLite cannot. */
export type CopyDatabase = (file: string, copy: string) => Promise<string | undefined>;

const LIMIT_BYTES = 256 * 1024 * 1024;

export async function stageWhole(
  disk: Disk,
  { fd, stat }: OpenedFile,
  copy: string,
  known: FileState | undefined,
): Promise<WholeState> {
  const source = markOf(stat);
  if (known?.kind === "whole" && known.source === source && known.copy === markFile(copy)) return known;
  if (stat.size > LIMIT_BYTES) throw new SourceError(`it has more than ${LIMIT_BYTES} bytes`);
  const { bytes } = await redactWhole(readRange(fd, 0, stat.size));
  putIfChanged(disk, copy, bytes);
  crashPoint("agents.conversation.whole-written");
  return { kind: "whole", source, copy: markFile(copy) };
}

export interface DatabaseSource {
  readonly place: Place;
  readonly file: SessionFile;
  readonly copy: string;
  readonly copyDatabase: CopyDatabase;
  readonly disk: Disk;
}

/** Undefined when there is no database. */
export async function stageDatabase(
  { place, file, copy, copyDatabase, disk }: DatabaseSource,
  known: FileState | undefined,
): Promise<WholeState | undefined> {
  const path = requireOwn(place, file.path);
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  // Before it is copied: a later transaction changes the mark.
  const source = markDatabase(path);
  if (known?.kind === "sqlite" && known.source === source && known.copy === markFile(copy)) return known;
  const temporary = join(dirname(copy), ".lazarus-database");
  try {
    const failure = await copyDatabase(path, temporary);
    if (failure !== undefined) throw new SourceError(`SQLite could not copy it (${failure})`);
    if (resolveOwn(place, file.path) !== path) throw new SourceError("a symbolic link appeared on its path");
    putIfChanged(disk, copy, readFileSync(temporary));
  } finally {
    rmSync(temporary, { force: true });
  }
  crashPoint("agents.conversation.database-written");
  return { kind: "sqlite", source, copy: markFile(copy) };
}

/** The same bytes are not stored twice. */
function putIfChanged(disk: Disk, copy: string, bytes: Buffer): void {
  const stat = lstatSync(copy, { throwIfNoEntry: false });
  if (stat?.isFile() && stat.size === bytes.length && readFileSync(copy).equals(bytes)) return;
  putFile(disk, copy, bytes);
}

export function markDatabase(path: string): string {
  // SQLite makes an empty log when it reads.
  const hasContent = (file: string) => (lstatSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
  return ["", "-wal", "-journal"]
    .map((suffix) => (hasContent(path + suffix) ? markFile(path + suffix) : "-"))
    .join(" ");
}

export function markFile(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "-" : markOf(stat);
}

function markOf(stat: { dev: number; ino: number; size: number; mtimeMs: number }): string {
  return `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}`;
}
