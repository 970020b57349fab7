// Files of a cell that processes have mapped into memory for writing (Linux). The kernel sets the times of such a file when a
// page is first written, not again until the page has reached the disk. So the stat of a mapped file does not show whether it
// is unchanged: it is hashed in every checkpoint, and in the first one after the mapping has ended (INV-3, INV-6).
import { closeSync, constants, fstatSync, fsyncSync, openSync, readdirSync, readSync } from "node:fs";
import { systemClock } from "../../platform/clock.ts";
import { quietly } from "../../platform/errors.ts";
import type { Mapping } from "../../platform/libc/mappings.ts";
import { posixSupport } from "../../platform/posix.ts";

/** Shared, writable and of a file: address, permissions, offset, device, inode, path. */
const SHARED_WRITABLE = /^\S+ [r-]w[x-]s \S+ \S+ ([1-9]\d*) +(.*)$/gm;
const SHARED = ["w-s ", "wxs "].map((mark) => Buffer.from(mark));
const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** What the last scan of all processes found, and when. */
let last:
  | { readonly atMs: number; readonly sinceMs: number; readonly mappings: readonly Mapping[] }
  | undefined;

export interface MappedOptions {
  /** How old a scan of the processes may be: it takes tens of milliseconds. Default 0. */
  readonly maxAgeMs?: number;
}

export interface MappedFiles {
  /** Some may belong to other file systems, which costs a hash. */
  readonly inodes: ReadonlySet<number>;
  /** When the scan began, by the clock that file systems use: a file that changed later may have a mapping that it missed. */
  readonly sinceMs: number;
  /** Whether this call made it. */
  readonly isNew: boolean;
}

/**
 * Written pages of mapped files in the cell are sent to the disk, so that a write while such a file is being read shows in
 * its stat. Processes that this user may not inspect are not covered.
 */
export function findMappedFiles(roots: readonly string[], { maxAgeMs = 0 }: MappedOptions = {}): MappedFiles {
  const nowMs = systemClock.monotonicMs();
  const earlier = last !== undefined && nowMs - last.atMs <= maxAgeMs ? last : undefined;
  last = earlier ?? { atMs: nowMs, sinceMs: systemClock.nowMs(), mappings: readMappings() };
  const inodes = new Set(last.mappings.map(({ inode }) => inode));
  const paths = last.mappings.map(({ path }) => path);
  for (const path of new Set(paths.filter((each) => roots.some((root) => each.startsWith(`${root}/`))))) {
    // Some file systems show another inode to `maps` than to stat.
    const inode = quietly(() => syncFile(path));
    if (inode !== undefined) inodes.add(inode);
  }
  return { inodes, sinceMs: last.sinceMs, isNew: earlier === undefined };
}

/** The shared, writable mappings of all processes. */
function readMappings(): Mapping[] {
  const support = posixSupport();
  const select = support.ok ? support.posix.sharedMappings : undefined;
  const mappings: Mapping[] = [];
  for (const pid of quietly(() => readdirSync("/proc")) ?? []) {
    if (!/^\d/.test(pid)) continue;
    mappings.push(...(quietly(() => mappingsIn(`/proc/${pid}/maps`, select)) ?? []));
  }
  return mappings;
}

/** As text, it takes half of the CPU time of a checkpoint of a small cell. */
function mappingsIn(file: string, select?: (maps: number) => Mapping[] | undefined): Mapping[] {
  const fd = openSync(file, "r");
  try {
    return quietly(() => select?.(fd)) ?? parseMaps(readMaps(fd));
  } finally {
    closeSync(fd);
  }
}

function parseMaps(lines: string): Mapping[] {
  return Array.from(lines.matchAll(SHARED_WRITABLE), ([, inode, path]) => ({
    inode: Number(inode),
    path: path!,
  }));
}

const buffer = Buffer.alloc(64 * 1024);

/** The kernel returns a few whole lines at a time. Those without a shared mapping are most of a megabyte: not decoded. */
function readMaps(fd: number): string {
  let lines = "";
  for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
    const part = buffer.subarray(0, count);
    if (SHARED.some((mark) => part.includes(mark))) lines += part.toString("utf8");
  }
  return lines;
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
