// Why a path could not be captured. A failure of one path becomes a flaw of the checkpoint (INV-6); a failure of the whole
// machine ends the capture.
import { existsSync } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import type { CaptureItem, MissedItem } from "../model/capture-item.ts";
import { isBeingWritten, SQLITE_MAGIC, TRANSACTION_SUFFIXES } from "../model/sqlite-files.ts";

const CHANGED_TYPE = "its type changed while it was being captured";
const CHANGED_PARENT = "a directory above it was replaced while it was being captured";

class Missed extends Error {
  readonly why: MissedItem["why"];
  constructor(why: MissedItem["why"], reason: string) {
    super(reason);
    this.why = why;
  }
}

export function explainMiss(item: CaptureItem, error: unknown): MissedItem {
  if (error instanceof Missed) return { path: item.path, why: error.why, reason: error.message };
  const code = systemErrorCode(error);
  if (code === "ENOENT") return { path: item.path, why: "vanished", reason: "gone before it was read" };
  if (code === "ENOTDIR") return { path: item.path, why: "changed-type", reason: CHANGED_PARENT };
  if (code === "ELOOP" || code === "ENXIO") {
    return { path: item.path, why: "changed-type", reason: CHANGED_TYPE };
  }
  refuseExhaustion(error, `reading ${item.path}`, ".");
  if (code === undefined) throw error;
  return { path: item.path, why: "unreadable", reason: `cannot be read (${code})` };
}

export function changedType(): Error {
  return new Missed("changed-type", CHANGED_TYPE);
}

export function isDatabaseContent(content: Uint8Array): boolean {
  return content.length >= 100 && SQLITE_MAGIC.equals(content.subarray(0, SQLITE_MAGIC.length));
}

/** A database that was written while it was read: its journal existed only briefly, or is kept in memory. */
export function changedDatabase(): Error {
  return new Missed("database", "a database in use");
}

/**
 * A plain copy of a database during a transaction is inconsistent, so SQLite has to copy it. Must be called after the stat
 * that the file is compared with when it has been read: a transaction that starts later changes that.
 */
export function refuseLiveDatabase(live: () => string | Buffer, content: Uint8Array, inode: number): void {
  if (!isDatabaseContent(content)) return;
  if (isBeingWritten(inode)) throw new Missed("database", "a database in use");
  const file = live();
  for (const suffix of TRANSACTION_SUFFIXES) {
    const sidecar = typeof file === "string" ? file + suffix : Buffer.concat([file, Buffer.from(suffix)]);
    if (existsSync(sidecar)) throw new Missed("database", "a database in use");
  }
}
