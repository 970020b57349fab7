// The files of a SQLite database: the suffixes of the sidecars next to it, and the magic that its content starts with.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { systemPath } from "./path-bytes.ts";

/** Files that SQLite keeps next to a database while it is in use. */
export const SIDECAR_SUFFIXES = ["-wal", "-shm", "-journal"] as const;

/** The sidecars that can hold transactions; the -shm file is only an index of the -wal file. */
export const TRANSACTION_SUFFIXES = ["-journal", "-wal"] as const;

export const SQLITE_MAGIC = Buffer.from("SQLite format 3\0", "latin1");

export function sidecarSuffix(name: string): string | undefined {
  return SIDECAR_SUFFIXES.find((suffix) => name.endsWith(suffix));
}

export function isSidecar(name: string): boolean {
  return sidecarSuffix(name) !== undefined;
}

/** Whether the path that `locate` returns is a regular file that starts with SQLite's magic. Follows no link and does not block on a FIFO. */
export function isDatabaseFile(locate: () => string): boolean {
  try {
    const fd = openSync(
      systemPath(locate()),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const head = Buffer.alloc(SQLITE_MAGIC.length);
      return (
        fstatSync(fd).isFile() &&
        readSync(fd, head, 0, head.length, 0) === head.length &&
        head.equals(SQLITE_MAGIC)
      );
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}
