// Makes one path as an entry describes it: content, links, FIFOs, then owner, xattrs, mode and time, in the one order in
// which the later do not undo the earlier. Synchronous, used by workers and by the main thread alike. It never follows a
// link at the end of a path; callers answer for the parents. What this machine cannot set becomes a flaw (INV-6).
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  lchownSync,
  lutimesSync,
  openSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { encodePath, systemPath } from "../model/path-bytes.ts";
import type { FileReader } from "../vault/layer-reader.ts";

/** What this process is able to set. */
export interface Means {
  readonly owners: boolean;
  readonly uid: number;
  readonly gid: number;
  readonly posix: Posix | undefined;
}

export function findMeans(): Means {
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
/** What its owner needs to read and set attributes. */
const OPEN = 0o600;

/** Makes a file that is not there yet; throws EEXIST when it is. */
export function makeFile(path: string, entry: Entry, reader: FileReader, means: Means, flaws: Flaw[]): void {
  const target = systemPath(path);
  const fd = openSync(target, NEW_FILE, PRIVATE);
  try {
    writeContent(fd, entry, reader);
    if (means.owners && (entry.uid !== means.uid || entry.gid !== means.gid)) {
      attempt(flaws, entry, "owner", () => fchownSync(fd, entry.uid, entry.gid));
    }
    // Only root can set the attributes of a read-only file.
    if (entry.xattrs !== undefined) setXattrs(target, entry, means, flaws);
    // After the owner, since changing that drops the setuid bit.
    if (entry.mode !== PRIVATE) attempt(flaws, entry, "mode", () => fchmodSync(fd, entry.mode));
  } finally {
    closeSync(fd);
  }
  setTime(target, entry, means);
}

function writeContent(fd: number, entry: Entry, reader: FileReader): void {
  const { extents } = entry;
  if (extents === undefined) {
    reader.read(entry, (chunk) => writeAll(fd, chunk));
    return;
  }
  let index = 0;
  let done = 0;
  reader.read(entry, (chunk) => {
    for (let rest = chunk; rest.length > 0 && index < extents.length; ) {
      const [offset, length] = extents[index]!;
      const part = rest.subarray(0, length - done);
      writeAll(fd, part, offset + done);
      done += part.length;
      rest = rest.subarray(part.length);
      if (done === length) {
        index += 1;
        done = 0;
      }
    }
  });
  ftruncateSync(fd, entry.size);
}

function writeAll(fd: number, bytes: Buffer, position: number | null = null): void {
  for (let offset = 0; offset < bytes.length; ) {
    const at = position === null ? null : position + offset;
    offset += writeSync(fd, bytes, offset, bytes.length - offset, at);
  }
}

/** Makes a link or a FIFO that is not there yet. Returns false when this machine cannot. */
export function makeSpecial(path: string, entry: Entry, means: Means, flaws: Flaw[]): boolean {
  const target = systemPath(path);
  if (entry.type === "symlink") symlinkSync(encodePath(entry.target ?? ""), target);
  else if (means.posix !== undefined) means.posix.makeFifo(target, entry.mode & 0o777);
  else {
    flaws.push({ path: entry.path, kind: "skipped", reason: "FIFOs cannot be made on this machine" });
    return false;
  }
  setMetadata(path, entry, means, flaws);
  return true;
}

/** Owner, mode, xattrs and time of something that is there and is not behind a link. */
export function setMetadata(path: string, entry: Entry, means: Means, flaws: Flaw[]): void {
  const target = systemPath(path);
  if (means.owners) {
    attempt(flaws, entry, "owner", () =>
      entry.type === "symlink"
        ? lchownSync(target, entry.uid, entry.gid)
        : chownSync(target, entry.uid, entry.gid),
    );
  }
  if (entry.type === "symlink") {
    setXattrs(target, entry, means, flaws);
  } else {
    // Its mode, or the one it has now, may forbid everyone but root to read and set attributes.
    if (!means.owners) attempt([], entry, "mode", () => chmodSync(target, entry.mode | OPEN));
    setXattrs(target, entry, means, flaws);
    attempt(flaws, entry, "mode", () => chmodSync(target, entry.mode));
  }
  setTime(target, entry, means);
}

/** Sets the entry's attributes and removes others. */
function setXattrs(target: string | Buffer, entry: Entry, means: Means, flaws: Flaw[]): void {
  const { posix } = means;
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

export function setTime(target: string | Buffer, entry: Entry, means: Means): void {
  if (means.posix !== undefined) {
    const ns = BigInt(entry.mtimeSec) * NS_PER_SECOND + BigInt(entry.mtimeNs);
    means.posix.setTimes(target, ns, ns);
    return;
  }
  const seconds = entry.mtimeSec + entry.mtimeNs / 1e9;
  lutimesSync(target, seconds, seconds);
}

/** What a file system may refuse for one path without the whole being lost. */
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

function attempt(flaws: Flaw[], entry: Entry, what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined || !REFUSALS.has(code)) throw error;
    flaws.push(degraded(entry, what, code));
  }
}

function degraded(entry: Entry, what: string, why: string): Flaw {
  return { path: entry.path, kind: "degraded", reason: `its ${what} could not be restored (${why})` };
}
