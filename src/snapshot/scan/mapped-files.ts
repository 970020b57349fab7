// Files of a cell that processes have mapped into memory for writing (Linux). The kernel sets the times of such a file when a
// page is first written, not again until the page has reached the disk. So the stat of a mapped file does not tell whether it
// is unchanged: it is hashed in every checkpoint, and in the first one after the mapping has ended (INV-3, INV-6).
import { closeSync, constants, fstatSync, fsyncSync, openSync, readdirSync, readSync } from "node:fs";

/** Shared, writable and of a file: address, permissions, offset, device, inode, path. */
const SHARED_WRITABLE = /^\S+ [r-]w[x-]s \S+ \S+ ([1-9]\d*) +(.*)$/gm;
const SHARED = ["w-s ", "wxs "].map((mark) => Buffer.from(mark));
const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * The inodes of mapped files; some may belong to other file systems, which costs a hash. Written pages of files in the cell
 * are sent to the disk, so that a write while such a file is being read shows in its stat. Nothing is known of processes
 * that this user may not inspect.
 */
export function findMappedFiles(roots: readonly string[]): Set<number> {
  const inodes = new Set<number>();
  const paths = new Set<string>();
  for (const pid of quietly(() => readdirSync("/proc")) ?? []) {
    if (!/^\d/.test(pid)) continue;
    for (const [, inode, path] of quietly(() => readMaps(`/proc/${pid}/maps`))?.matchAll(SHARED_WRITABLE) ??
      []) {
      inodes.add(Number(inode));
      if (roots.some((root) => path!.startsWith(`${root}/`))) paths.add(path!);
    }
  }
  for (const path of paths) {
    // Some file systems show another inode to `maps` than to stat.
    const inode = quietly(() => syncFile(path));
    if (inode !== undefined) inodes.add(inode);
  }
  return inodes;
}

const buffer = Buffer.alloc(64 * 1024);

/** The kernel returns a few whole lines at a time. Those without a shared mapping are most of a megabyte: not decoded. */
function readMaps(file: string): string {
  const fd = openSync(file, "r");
  try {
    let lines = "";
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
      const part = buffer.subarray(0, count);
      if (SHARED.some((mark) => part.includes(mark))) lines += part.toString("utf8");
    }
    return lines;
  } finally {
    closeSync(fd);
  }
}

function syncFile(path: string): number {
  const fd = openSync(path, OPEN);
  try {
    fsyncSync(fd);
    return fstatSync(fd).ino;
  } finally {
    closeSync(fd);
  }
}

/** Processes end at any time, and those of other users cannot be read. */
function quietly<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
