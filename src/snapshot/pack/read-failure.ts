// Why a path could not be captured. What concerns the path becomes a reason in the checkpoint (INV-6); what concerns the
// whole machine ends the capture.
import { existsSync } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import type { CaptureItem, MissedItem } from "../model/capture-item.ts";
import { SQLITE_MAGIC, TRANSACTION_SUFFIXES } from "../model/sqlite-files.ts";

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
  if (code === "ELOOP" || code === "ENOTDIR" || code === "ENXIO") {
    return { path: item.path, why: "changed-type", reason: "became something else while being captured" };
  }
  refuseExhaustion(error, `reading ${item.path}`, ".");
  if (code === undefined) throw error;
  return { path: item.path, why: "unreadable", reason: `cannot be read (${code})` };
}

export function changedType(): Error {
  return new Missed("changed-type", "became something else while being captured");
}

export function isDatabaseContent(content: Uint8Array): boolean {
  return content.length >= 100 && SQLITE_MAGIC.equals(content.subarray(0, SQLITE_MAGIC.length));
}

/** A database that moved while it was read: its journal came and went between two looks, or is kept in memory. */
export function movedDatabase(): Error {
  return new Missed("database", "a database in use");
}

/** Reading a database while a transaction is under way captures half of it: SQLite must do it. */
export function refuseLiveDatabase(file: string | Buffer, content: Uint8Array): void {
  if (!isDatabaseContent(content)) return;
  for (const suffix of TRANSACTION_SUFFIXES) {
    const sidecar = typeof file === "string" ? file + suffix : Buffer.concat([file, Buffer.from(suffix)]);
    if (existsSync(sidecar)) throw new Missed("database", "a database in use");
  }
}
