// Creates one path from an entry: content, symlinks, FIFOs, then owner, xattrs, mode and time, in an order in which no
// step undoes an earlier one. Synchronous; used by workers and the main thread. Never follows a symlink at the end of a
// path; callers pass paths through open directories (`OpenTree`), so that no parent is a link either. What this
// process cannot set becomes a flaw (INV-6).
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  openSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { createStat, statOpen } from "../../platform/file-stat.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { changeMode } from "../model/open-tree.ts";
import { encodePath, systemPath } from "../model/path-bytes.ts";
import { placeStored } from "../model/stored-bytes.ts";
import type { FileReader } from "../vault/layer-reader.ts";

/** What this process may set. */
export interface Capabilities {
  readonly owners: boolean;
  readonly uid: number;
  readonly gid: number;
  readonly posix: Posix | undefined;
}

export function detectCapabilities(): Capabilities {
  const support = posixSupport();
  const uid = process.geteuid?.() ?? -1;
  return {
    owners: uid === 0,
    uid,
    gid: process.getegid?.() ?? -1,
    posix: support.ok ? support.posix : undefined,
  };
}

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const PRIVATE = 0o600;
/** Permission that the owner needs to read and set attributes. */
const OPEN = 0o600;

/** Creates a file; throws EEXIST when it exists. */
export function makeFile(
  path: string,
  entry: Entry,
  reader: FileReader,
  capabilities: Capabilities,
  flaws: Flaw[],
): void {
  const target = systemPath(path);
  const fd = openSync(target, NEW_FILE, PRIVATE);
  try {
    writeContent(fd, entry, reader);
    if (entry.uid !== capabilities.uid || entry.gid !== capabilities.gid)
      attempt(flaws, entry, ownerOf(entry), () => fchownSync(fd, entry.uid, entry.gid));
    // Only root can set the attributes of a read-only file.
    if (entry.xattrs !== undefined) setXattrs(target, entry, capabilities, flaws);
    // After the owner, since changing that drops the setuid bit.
    if (entry.mode !== PRIVATE) attempt(flaws, entry, "mode", () => fchmodSync(fd, entry.mode));
    setTime(target, entry, capabilities, fd);
  } finally {
    closeSync(fd);
  }
}

function writeContent(fd: number, entry: Entry, reader: FileReader): void {
  const { extents, size } = entry;
  reader.read(
    entry,
    placeStored(extents, (part, offset) => writeAll(fd, part, offset)),
  );
  if (extents !== undefined) ftruncateSync(fd, size);
}

/** A write may take only a part. */
export function writeAll(fd: number, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, offset + at);
}

/** Creates a symlink or FIFO. Returns false when this machine has no FIFOs. */
export function makeSpecial(path: string, entry: Entry, capabilities: Capabilities, flaws: Flaw[]): boolean {
  const target = systemPath(path);
  if (entry.type === "symlink") symlinkSync(encodePath(entry.target ?? ""), target);
  else if (capabilities.posix !== undefined) capabilities.posix.makeFifo(target, entry.mode & 0o777);
  else {
    flaws.push({ path: entry.path, kind: "skipped", reason: "this machine cannot create FIFOs" });
    return false;
  }
  setMetadata(path, entry, capabilities, flaws);
  return true;
}

/** Sets owner, mode, xattrs and time of an existing path. */
export function setMetadata(path: string, entry: Entry, capabilities: Capabilities, flaws: Flaw[]): void {
  const target = systemPath(path);
  if (capabilities.owners || !hasOwner(target, entry))
    attempt(flaws, entry, ownerOf(entry), () => lchownSync(target, entry.uid, entry.gid));
  if (entry.type === "symlink") {
    setXattrs(target, entry, capabilities, flaws);
  } else {
    // Its mode, or the one it has now, may forbid everyone but root to read and set attributes.
    if (!capabilities.owners) attempt([], entry, "mode", () => changeMode(target, entry.mode | OPEN));
    setXattrs(target, entry, capabilities, flaws);
    attempt(flaws, entry, "mode", () => changeMode(target, entry.mode));
  }
  setTime(target, entry, capabilities);
}

const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Reused: a thread finishes one directory at a time. */
const made = createStat();

/** Finishes a directory that this process has just made, through one descriptor: half the time of lookups by path. */
export function finishDirectory(path: string, entry: Entry, capabilities: Capabilities, flaws: Flaw[]): void {
  const target = systemPath(path);
  const fd = openSync(target, OPEN_DIRECTORY);
  try {
    const { uid, gid } = statOpen(fd, made);
    if (uid !== entry.uid || gid !== entry.gid)
      attempt(flaws, entry, ownerOf(entry), () => fchownSync(fd, entry.uid, entry.gid));
    if (entry.xattrs !== undefined || capabilities.posix?.hasXattrs(fd))
      setXattrs(target, entry, capabilities, flaws);
    attempt(flaws, entry, "mode", () => fchmodSync(fd, entry.mode));
    setTime(target, entry, capabilities, fd);
  } finally {
    closeSync(fd);
  }
}

function ownerOf({ uid, gid }: Entry): string {
  return `owner ${uid}:${gid}`;
}

function hasOwner(target: string | Buffer, { uid, gid }: Entry): boolean {
  const now = lstatSync(target);
  return now.uid === uid && now.gid === gid;
}

/** Sets the entry's attributes and removes others. */
function setXattrs(target: string | Buffer, entry: Entry, capabilities: Capabilities, flaws: Flaw[]): void {
  const { posix } = capabilities;
  const wanted = new Map(entry.xattrs);
  if (posix === undefined) {
    if (wanted.size > 0) flaws.push(degraded(entry, "extended attributes", "not available on this machine"));
    return;
  }
  const found = new Map(posix.listXattrs(target).map(({ name, value }) => [name, value]));
  for (const name of found.keys()) {
    if (!wanted.has(name)) attempt(flaws, entry, `attribute ${name}`, () => posix.removeXattr(target, name));
  }
  for (const [name, base64] of wanted) {
    const value = Buffer.from(base64, "base64");
    if (found.get(name)?.equals(value)) continue;
    attempt(flaws, entry, `attribute ${name}`, () => posix.setXattr(target, name, value));
  }
}

const NS_PER_SECOND = 1_000_000_000n;

/** With `fd`, the file is open there: half the time of a lookup by path. */
export function setTime(target: string | Buffer, entry: Entry, { posix }: Capabilities, fd?: number): void {
  if (posix !== undefined) {
    const ns = BigInt(entry.mtimeSec) * NS_PER_SECOND + BigInt(entry.mtimeNs);
    if (fd === undefined) posix.setTimes(target, ns, ns);
    else posix.setOpenTimes(fd, ns, ns);
    return;
  }
  const seconds = entry.mtimeSec + entry.mtimeNs / 1e9;
  lutimesSync(target, seconds, seconds);
}

/** Errors that concern one path only; the restore continues. */
const REFUSALS = new Set([
  "EPERM",
  "EACCES",
  "ENOTSUP",
  "EOPNOTSUPP",
  "EINVAL",
  "ENODATA",
  "ENOATTR",
  "E2BIG",
  "ERANGE",
]);

function attempt(flaws: Flaw[], entry: Entry, field: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined || !REFUSALS.has(code)) throw error;
    flaws.push(degraded(entry, field, code));
  }
}

function degraded(entry: Entry, field: string, reason: string): Flaw {
  return { path: entry.path, kind: "degraded", reason: `its ${field} could not be restored (${reason})` };
}
