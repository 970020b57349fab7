// What stat says, in plain numbers and exact to the nanosecond, which Node gives only as objects full of big integers: a
// third of the garbage of a large capture. On Linux statx fills one buffer that is read in place; elsewhere, and where
// statx is forbidden, the numbers come from Node.
import { type BigIntStats, constants, fstatSync, lstatSync } from "node:fs";
import { createRequire } from "node:module";
import { endianness } from "node:os";
import type { FilePath } from "./disk.ts";

export interface FileStat {
  /** With the bits of the type. */
  mode: number;
  uid: number;
  gid: number;
  nlink: number;
  ino: number;
  size: number;
  /** Of 512 bytes. */
  blocks: number;
  /** Whole seconds, floored, and the nanoseconds above them. */
  mtimeSec: number;
  mtimeNs: number;
  ctimeSec: number;
  ctimeNs: number;
}

/** To be filled, time and again. */
export function createStat(): FileStat {
  return {
    mode: 0,
    uid: 0,
    gid: 0,
    nlink: 0,
    ino: 0,
    size: 0,
    blocks: 0,
    mtimeSec: 0,
    mtimeNs: 0,
    ctimeSec: 0,
    ctimeNs: 0,
  };
}

/** Of an open file, into `stat`. */
export function statOpen(fd: number, stat: FileStat): FileStat {
  if (statx === undefined) statx = loadStatx() ?? null;
  if (statx?.(fd, "", AT_EMPTY_PATH, STATX_BASIC, words) !== 0)
    return fromBig(fstatSync(fd, { bigint: true }), stat);
  stat.nlink = words[4]!;
  stat.uid = words[5]!;
  stat.gid = words[6]!;
  stat.mode = words[7]! & 0xffff;
  stat.ino = wide(8);
  stat.size = wide(10);
  stat.blocks = wide(12);
  stat.ctimeSec = signedWide(24);
  stat.ctimeNs = words[26]!;
  stat.mtimeSec = signedWide(28);
  stat.mtimeNs = words[30]!;
  return stat;
}

/** Of a path, into `stat`; a link is not followed. */
export function statPath(path: FilePath, stat: FileStat): FileStat {
  return fromBig(lstatSync(path, { bigint: true }), stat);
}

export function isOfMode(stat: FileStat, type: number): boolean {
  return (stat.mode & constants.S_IFMT) === type;
}

/** The same number that a plain stat of Node gives as `ctimeMs`, so that the two can be compared. */
export function ctimeMs({ ctimeSec, ctimeNs }: FileStat): number {
  return ctimeSec * 1000 + ctimeNs / 1_000_000;
}

const NS = 1_000_000_000n;

function fromBig(from: BigIntStats, stat: FileStat): FileStat {
  stat.mode = Number(from.mode);
  stat.uid = Number(from.uid);
  stat.gid = Number(from.gid);
  stat.nlink = Number(from.nlink);
  stat.ino = Number(from.ino);
  stat.size = Number(from.size);
  stat.blocks = Number(from.blocks);
  const mtimeSec = floorSeconds(from.mtimeNs);
  const ctimeSec = floorSeconds(from.ctimeNs);
  stat.mtimeSec = Number(mtimeSec);
  stat.mtimeNs = Number(from.mtimeNs - mtimeSec * NS);
  stat.ctimeSec = Number(ctimeSec);
  stat.ctimeNs = Number(from.ctimeNs - ctimeSec * NS);
  return stat;
}

function floorSeconds(ns: bigint): bigint {
  const seconds = ns / NS;
  return ns < 0n && seconds * NS !== ns ? seconds - 1n : seconds;
}

const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC = 0x7ff;
const WORD = 2 ** 32;
/** struct statx is the same on every architecture. */
const words = new Uint32Array(64);
const signedWords = new Int32Array(words.buffer);
const wide = (at: number) => words[at + 1]! * WORD + words[at]!;
const signedWide = (at: number) => signedWords[at + 1]! * WORD + words[at]!;

type Statx = (fd: number, path: string, flags: number, mask: number, into: Uint32Array) => number;

let statx: Statx | null | undefined;

function loadStatx(): Statx | undefined {
  if (process.platform !== "linux" || endianness() !== "LE") return undefined;
  try {
    const libc = createRequire(import.meta.url)("koffi").load(null);
    return libc.func("int statx(int fd, const char *path, int flags, uint mask, void *into)");
  } catch {
    return undefined;
  }
}
