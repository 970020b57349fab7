// Unpacks untrusted archives below one directory and nowhere else. Paths must be relative, without "..", and pass only
// through directories made here; symlinks are created but never written through. Devices become flaws. The directory must
// be new and private, so that no other process changes it during the import.
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import type { Flaw } from "../model/entry.ts";
import { decodePath, encodePath, parentPath, systemPath } from "../model/path-bytes.ts";
import { placeStored } from "../model/stored-bytes.ts";
import { writeAll } from "../restore/make-path.ts";
import type { TarEntry, TarSink } from "../tar/read.ts";
import {
  cleanPath,
  hostile,
  isWhiteout,
  refuseImpossiblePath,
  unescapePath,
  WHITEOUT,
} from "./archive-path.ts";

export interface UnpackOptions {
  /** Set the owners that the archive names; requires root. */
  readonly owners: boolean;
  /** Keep setuid and setgid bits and privileged xattrs. */
  readonly trusted: boolean;
  readonly maxEntries: number;
  /** Set for image layers: whiteouts delete, and escaped names are decoded. */
  readonly layer?: { readonly unescape: (name: string) => string };
}

export interface Unpacker extends TarSink {
  /** Switches to the options of the next layer. */
  withOptions(options: UnpackOptions): void;
  /** Sets the owners and times of directories, which stay writable for this process until `setDirectoryModes`. */
  finish(): void;
  /** Sets the attributes and modes of directories, after which only root may be able to enter them. The tree may have been moved. */
  setDirectoryModes(root: string): void;
  readonly entries: number;
  readonly flaws: readonly Flaw[];
}

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const OPAQUE = ".wh..wh..opq";
const SET_ID = 0o6000;
const HARMLESS_XATTR = /^(?:user\.|system\.posix_acl_)/;
const NS = 1_000_000_000n;

/** The state of one unpacking. */
interface Unpacking {
  root: string;
  options: UnpackOptions;
  readonly posix: Posix | undefined;
  /** Directories made here; nothing is written anywhere else. */
  readonly directories: Map<string, TarEntry | undefined>;
  /** Paths made by this layer: an opaque whiteout hides only those of lower layers. */
  madeByLayer: Set<string>;
  readonly flaws: Flaw[];
  entries: number;
  open: { fd: number; path: string; entry: TarEntry; write(chunk: Buffer): void } | undefined;
}

export function createUnpacker(root: string, options: UnpackOptions): Unpacker {
  const support = posixSupport();
  const state: Unpacking = {
    root,
    options,
    posix: support.ok ? support.posix : undefined,
    directories: new Map([[".", undefined]]),
    madeByLayer: new Set(),
    flaws: [],
    entries: 0,
    open: undefined,
  };
  return {
    entry(entry) {
      state.entries += 1;
      const { maxEntries } = state.options;
      if (state.entries > maxEntries)
        throw new LazarusError("LAYER_HOSTILE", `the archive has more than ${maxEntries} entries`, {
          hint: "split the archive, and import each part as a separate mission",
        });
      refuseImpossiblePath(entry.path, () => begin(state, entry));
    },
    data: (chunk) => state.open?.write(chunk),
    close: () => refuseImpossiblePath(state.open?.path ?? "", () => closeFile(state)),
    withOptions(next) {
      state.options = next;
      state.madeByLayer = new Set();
    },
    finish() {
      for (const [path, entry] of bottomUp(state)) {
        if (state.options.owners) lchownSync(at(state, path), entry.uid, entry.gid);
        setTimes(state, path, entry);
      }
    },
    setDirectoryModes(currentRoot) {
      state.root = currentRoot;
      for (const [path, entry] of bottomUp(state)) {
        setXattrs(state, path, entry);
        chmodSync(at(state, path), entry.mode);
      }
    },
    get entries() {
      return state.entries;
    },
    flaws: state.flaws,
  };
}

function at({ root }: Unpacking, path: string): string | Buffer {
  return systemPath(path === "." ? root : `${root}/${path}`);
}

function enterParent(state: Unpacking, path: string): void {
  const parent = parentPath(path);
  if (state.directories.has(parent)) return;
  enterParent(state, parent);
  const found = lstatSync(at(state, parent), { throwIfNoEntry: false });
  if (found !== undefined)
    throw hostile(path, `would be written through ${parent}, which is not a directory`);
  mkdirSync(at(state, parent), { mode: 0o700 });
  state.directories.set(parent, undefined);
}

/** Removes an earlier entry: the last entry of a name wins, as with tar. */
function clear(state: Unpacking, path: string): void {
  if (path === ".") throw hostile(path, "the archive replaces its own root");
  if (state.directories.has(path)) {
    for (const known of state.directories.keys())
      if (known === path || known.startsWith(`${path}/`)) state.directories.delete(known);
  }
  rmSync(at(state, path), { recursive: true, force: true });
}

function make(state: Unpacking, path: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
    clear(state, path);
    work();
  }
  state.madeByLayer.add(path);
}

function setXattrs(state: Unpacking, path: string, entry: TarEntry): void {
  for (const [name, value] of entry.xattrs ?? []) {
    if (!state.options.trusted && !HARMLESS_XATTR.test(name)) {
      state.flaws.push({ path, kind: "degraded", reason: `the privileged attribute ${name} was dropped` });
      continue;
    }
    try {
      if (state.posix === undefined) throw new Error("xattrs are not supported");
      state.posix.setXattr(at(state, path), name, Buffer.from(value, "base64"));
    } catch (error) {
      const reason = systemErrorCode(error) ?? "not supported";
      state.flaws.push({
        path,
        kind: "degraded",
        reason: `the attribute ${name} could not be set (${reason})`,
      });
    }
  }
}

function setTimes(state: Unpacking, path: string, entry: TarEntry): void {
  const ns = BigInt(entry.mtimeSec) * NS + BigInt(entry.mtimeNs);
  state.posix?.setTimes(at(state, path), ns, ns);
}

function modeOf(state: Unpacking, path: string, entry: TarEntry): number {
  if (state.options.trusted || entry.type === "directory" || (entry.mode & SET_ID) === 0) return entry.mode;
  state.flaws.push({ path, kind: "degraded", reason: "its setuid or setgid bit was dropped" });
  return entry.mode & ~SET_ID;
}

function begin(state: Unpacking, entry: TarEntry): void {
  const path = cleanPath(entry.path);
  const { posix, options } = state;
  if (options.layer !== undefined && isWhiteout(path)) {
    applyWhiteout(state, path);
    return;
  }
  const real = options.layer === undefined ? path : unescapePath(path, options.layer.unescape);
  if (entry.type === "device") {
    state.flaws.push({ path: real, kind: "skipped", reason: "a device" });
    return;
  }
  if (real === "." && entry.type !== "directory") throw hostile(real, "the archive replaces its own root");
  enterParent(state, real);
  switch (entry.type) {
    case "directory":
      if (!state.directories.has(real)) make(state, real, () => mkdirSync(at(state, real), { mode: 0o700 }));
      state.directories.set(real, entry);
      return;
    case "file":
      make(state, real, () => {
        const fd = openSync(at(state, real), CREATE, 0o600);
        const write = placeStored(entry.extents, (part, offset) => writeAll(fd, part, offset));
        state.open = { fd, path: real, entry, write };
      });
      return;
    case "symlink":
      if (entry.target === undefined || entry.target === "")
        throw hostile(real, "is a symlink without a target");
      make(state, real, () => symlinkSync(encodePath(entry.target!), at(state, real)));
      break;
    case "fifo":
      if (posix === undefined) {
        state.flaws.push({ path: real, kind: "skipped", reason: "a FIFO, which this machine cannot create" });
        return;
      }
      make(state, real, () => posix.makeFifo(at(state, real), 0o600));
      break;
    case "link":
      makeLink(state, real, entry);
      return;
  }
  if (options.owners) lchownSync(at(state, real), entry.uid, entry.gid);
  setXattrs(state, real, entry);
  if (entry.type === "fifo") chmodSync(at(state, real), modeOf(state, real, entry));
  setTimes(state, real, entry);
}

function makeLink(state: Unpacking, path: string, entry: TarEntry): void {
  const layer = state.options.layer;
  const named = cleanPath(entry.target ?? "");
  const target = layer === undefined ? named : unescapePath(named, layer.unescape);
  const found = state.directories.has(parentPath(target))
    ? lstatSync(at(state, target), { throwIfNoEntry: false })
    : undefined;
  if (found === undefined || found.isDirectory())
    throw hostile(path, `is a hard link to ${target}, which is not a file of this archive`);
  if (target === path) return;
  // link(2) follows symlinks on some systems, so a second symlink is made instead.
  if (found.isSymbolicLink())
    make(state, path, () =>
      symlinkSync(readlinkSync(at(state, target), { encoding: "buffer" }), at(state, path)),
    );
  else make(state, path, () => linkSync(at(state, target), at(state, path)));
}

function applyWhiteout(state: Unpacking, path: string): void {
  const parent = parentPath(path);
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!state.directories.has(parent)) return;
  if (name === OPAQUE) {
    const below = parent === "." ? "" : `${parent}/`;
    for (const known of listBelow(at(state, parent)))
      if (!state.madeByLayer.has(below + known)) clear(state, below + known);
    return;
  }
  const hidden = state.options.layer!.unescape(name.slice(WHITEOUT.length));
  clear(state, cleanPath(parent === "." ? hidden : `${parent}/${hidden}`));
}

/** Directories that the archive describes, children before their parents: afterwards, a parent may be inaccessible. */
function bottomUp(state: Unpacking): [string, TarEntry][] {
  return [...state.directories]
    .filter(described)
    .sort(([a], [b]) => (a === "." || (b !== "." && a < b) ? 1 : -1));
}

function closeFile(state: Unpacking): void {
  if (state.open === undefined) return;
  const { fd, path, entry } = state.open;
  state.open = undefined;
  try {
    if (entry.extents !== undefined) ftruncateSync(fd, entry.size);
    if (state.options.owners) fchownSync(fd, entry.uid, entry.gid);
    // Before the mode: only root can set attributes of a read-only file.
    setXattrs(state, path, entry);
    fchmodSync(fd, modeOf(state, path, entry));
  } finally {
    closeSync(fd);
  }
  setTimes(state, path, entry);
}

function described(directory: [string, TarEntry | undefined]): directory is [string, TarEntry] {
  return directory[1] !== undefined;
}

function listBelow(directory: string | Buffer): string[] {
  return readdirSync(directory, { encoding: "buffer" }).map(decodePath);
}
