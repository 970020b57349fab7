// A reserve of disk space: a file of real bytes next to what must still be writable when the disk is full. It is removed
// when a write fails for lack of space, and made again when the work is done. The reserve is not data: losing it costs
// nothing, so its file is neither atomic nor durable, and failing to make it is not an error.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import type { Disk } from "./disk.ts";
import { LazarusError, systemErrorCode } from "./errors.ts";

export function isDiskFull(error: unknown): boolean {
  if (error instanceof LazarusError) return error.code === "DISK_FULL";
  const code = systemErrorCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}

/** Makes the file at least this large, if there is room for it. */
export function keepReserve(disk: Disk, file: string, bytes: number): void {
  try {
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) >= bytes) return;
    releaseReserve(disk, file);
    const fd = disk.create(file, 0o600);
    try {
      // Not zeros: some file systems store them, or repeated blocks, without using space.
      disk.write(fd, createHash("shake256", { outputLength: bytes }).update(file).digest());
    } finally {
      disk.close(fd);
    }
  } catch {
    // Half a reserve would take the last free bytes.
    releaseReserve(disk, file);
  }
}

/** Frees the space. Returns whether there was a reserve. */
export function releaseReserve(disk: Disk, file: string): boolean {
  try {
    disk.unlink(file);
    return true;
  } catch {
    return false;
  }
}

/** Runs `work`, which may be repeated: when the disk is full, once more without the reserve. */
export function withReserve<T>(disk: Disk, file: string, work: () => T): T {
  const again = (error: unknown): T => {
    if (!isDiskFull(error) || !releaseReserve(disk, file)) throw error;
    return work();
  };
  let result: T;
  try {
    result = work();
  } catch (error) {
    return again(error);
  }
  return result instanceof Promise ? (result.catch(again) as T) : result;
}
