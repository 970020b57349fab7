// The files of a SQLite database: the suffixes of the sidecars next to it, and the magic that its content starts with.
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from "node:fs";
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

/** The first byte of the range that SQLite locks to read, and locks exclusively while it writes pages into the file. */
const SHARED_BYTE = 0x40000000 + 2;

/**
 * Whether a process is writing to the database with this inode. With its journal in memory, nothing else shows that a
 * transaction has written some of its pages and not yet the others. Only Linux lists locks; a match of another file
 * system's inode merely costs a copy.
 */
export function isBeingWritten(inode: number): boolean {
  let locks: string;
  try {
    locks = readFileSync("/proc/locks", "latin1");
  } catch {
    return false;
  }
  // "1: POSIX  ADVISORY  WRITE 4711 08:01:123456 1073741826 1073742335"
  return locks.split("\n").some((line) => {
    const [, , , access, , file = "", first, last] = line.split(/\s+/);
    if (access !== "WRITE" || !file.endsWith(`:${inode}`)) return false;
    return Number(first) <= SHARED_BYTE && (last === "EOF" || Number(last) >= SHARED_BYTE);
  });
}

/**
 * Whether the path that `locate` returns is a regular file that starts with SQLite's magic. Follows no link and does not
 * block on a FIFO.
 */
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
