// Unpacks untrusted archives below one directory and nowhere else. Paths must be relative, without "..", and pass only
// through directories made here; symlinks are created but never written through. Devices become flaws. The directory must
// be new and private, so that no other process changes it meanwhile.
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
  writeSync,
} from "node:fs";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import type { Flaw } from "../model/entry.ts";
import { decodePath, encodePath, parentPath, systemPath } from "../model/path-bytes.ts";
import type { TarEntry, TarSink } from "../tar/read.ts";

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
  /** Owners and times of directories. They stay open to this process until `setDirectoryModes`. */
  finish(): void;
  /** Attributes and modes of directories, which may close them to everyone but root. The tree may lie elsewhere by now. */
  setDirectoryModes(root: string): void;
  readonly entries: number;
  readonly flaws: readonly Flaw[];
}

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
const SET_ID = 0o6000;
const HARMLESS_XATTR = /^(?:user\.|system\.posix_acl_)/;
const NS = 1_000_000_000n;

export function createUnpacker(firstRoot: string, first: UnpackOptions): Unpacker {
  let root = firstRoot;
  let options = first;
  const support = posixSupport();
  const posix: Posix | undefined = support.ok ? support.posix : undefined;
  /** Directories made here; nothing is written anywhere else. */
  const directories = new Map<string, TarEntry | undefined>([[".", undefined]]);
  /** Paths made by this layer: an opaque whiteout hides only those of lower layers. */
  let madeByLayer = new Set<string>();
  const flaws: Flaw[] = [];
  let entries = 0;
  let open: { fd: number; path: string; entry: TarEntry; extent: number; done: number } | undefined;

  const at = (path: string) => systemPath(path === "." ? root : `${root}/${path}`);

  const enterParent = (path: string) => {
    const parent = parentPath(path);
    if (directories.has(parent)) return;
    enterParent(parent);
    const found = lstatSync(at(parent), { throwIfNoEntry: false });
    if (found !== undefined)
      throw hostile(path, `would be written through ${parent}, which is not a directory`);
    mkdirSync(at(parent), { mode: 0o700 });
    directories.set(parent, undefined);
  };

  /** Removes an earlier entry: the last entry of a name wins, as with tar. */
  const clear = (path: string) => {
    if (path === ".") throw hostile(path, "the archive replaces its own root");
    if (directories.has(path)) {
      for (const known of directories.keys())
        if (known === path || known.startsWith(`${path}/`)) directories.delete(known);
    }
    rmSync(at(path), { recursive: true, force: true });
  };

  const make = (path: string, work: () => void) => {
    try {
      work();
    } catch (error) {
      if (systemErrorCode(error) !== "EEXIST") throw error;
      clear(path);
      work();
    }
    madeByLayer.add(path);
  };

  const setXattrs = (path: string, entry: TarEntry) => {
    for (const [name, value] of entry.xattrs ?? []) {
      if (!options.trusted && !HARMLESS_XATTR.test(name)) {
        flaws.push({ path, kind: "degraded", reason: `the privileged attribute ${name} was dropped` });
        continue;
      }
      try {
        if (posix === undefined) throw new Error("no xattrs here");
        posix.setXattr(at(path), name, Buffer.from(value, "base64"));
      } catch (error) {
        const why = systemErrorCode(error) ?? "not supported";
        flaws.push({ path, kind: "degraded", reason: `the attribute ${name} could not be set (${why})` });
      }
    }
  };

  const setTimes = (path: string, entry: TarEntry) => {
    const ns = BigInt(entry.mtimeSec) * NS + BigInt(entry.mtimeNs);
    posix?.setTimes(at(path), ns, ns);
  };

  const modeOf = (path: string, entry: TarEntry) => {
    if (options.trusted || entry.type === "directory" || (entry.mode & SET_ID) === 0) return entry.mode;
    flaws.push({ path, kind: "degraded", reason: "its setuid or setgid bit was dropped" });
    return entry.mode & ~SET_ID;
  };

  const begin = (entry: TarEntry) => {
    const path = cleanPath(entry.path);
    if (options.layer !== undefined && isWhiteout(path)) return applyWhiteout(path);
    const real = options.layer === undefined ? path : unescapePath(path, options.layer.unescape);
    if (entry.type === "device") {
      flaws.push({ path: real, kind: "skipped", reason: "a device" });
      return;
    }
    if (real === "." && entry.type !== "directory") throw hostile(real, "the archive replaces its own root");
    enterParent(real);
    switch (entry.type) {
      case "directory":
        if (!directories.has(real)) make(real, () => mkdirSync(at(real), { mode: 0o700 }));
        directories.set(real, entry);
        return;
      case "file":
        make(real, () => {
          open = { fd: openSync(at(real), CREATE, 0o600), path: real, entry, extent: 0, done: 0 };
        });
        return;
      case "symlink":
        if (entry.target === undefined || entry.target === "")
          throw hostile(real, "is a symlink without a target");
        make(real, () => symlinkSync(encodePath(entry.target!), at(real)));
        break;
      case "fifo":
        if (posix === undefined) {
          flaws.push({ path: real, kind: "skipped", reason: "a FIFO, which cannot be made here" });
          return;
        }
        make(real, () => posix.makeFifo(at(real), 0o600));
        break;
      case "link":
        makeLink(real, entry);
        return;
    }
    if (options.owners) lchownSync(at(real), entry.uid, entry.gid);
    setXattrs(real, entry);
    if (entry.type === "fifo") chmodSync(at(real), modeOf(real, entry));
    setTimes(real, entry);
  };

  const makeLink = (path: string, entry: TarEntry) => {
    const layer = options.layer;
    const named = cleanPath(entry.target ?? "");
    const target = layer === undefined ? named : unescapePath(named, layer.unescape);
    const found = directories.has(parentPath(target))
      ? lstatSync(at(target), { throwIfNoEntry: false })
      : undefined;
    if (found === undefined || found.isDirectory())
      throw hostile(path, `is a hard link to ${target}, which is not a file of this archive`);
    if (target === path) return;
    // link(2) follows symlinks on some systems, so a second symlink is made instead.
    if (found.isSymbolicLink())
      make(path, () => symlinkSync(readlinkSync(at(target), { encoding: "buffer" }), at(path)));
    else make(path, () => linkSync(at(target), at(path)));
  };

  const applyWhiteout = (path: string) => {
    const parent = parentPath(path);
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (!directories.has(parent)) return;
    if (name === OPAQUE) {
      const below = parent === "." ? "" : `${parent}/`;
      for (const known of listBelow(at(parent))) if (!madeByLayer.has(below + known)) clear(below + known);
      return;
    }
    const hidden = options.layer!.unescape(name.slice(WHITEOUT.length));
    clear(cleanPath(parent === "." ? hidden : `${parent}/${hidden}`));
  };

  /** Directories that the archive describes, children before their parents: a parent may be closed to us afterwards. */
  const bottomUp = () =>
    [...directories].filter(described).sort(([a], [b]) => (a === "." || (b !== "." && a < b) ? 1 : -1));

  const writeData = (chunk: Buffer) => {
    if (open === undefined) return;
    const { extents } = open.entry;
    let rest = chunk;
    while (rest.length > 0) {
      const [offset, length] = extents?.[open.extent] ?? [0, open.entry.size];
      const part = rest.subarray(0, length - open.done);
      for (let written = 0; written < part.length; )
        written += writeSync(open.fd, part, written, part.length - written, offset + open.done + written);
      open.done += part.length;
      rest = rest.subarray(part.length);
      if (extents !== undefined && open.done === length) {
        open.extent += 1;
        open.done = 0;
      }
    }
  };

  const closeFile = () => {
    if (open === undefined) return;
    const { fd, path, entry } = open;
    open = undefined;
    try {
      if (entry.extents !== undefined) ftruncateSync(fd, entry.size);
      if (options.owners) fchownSync(fd, entry.uid, entry.gid);
      // Before the mode: only root can set attributes of a read-only file.
      setXattrs(path, entry);
      fchmodSync(fd, modeOf(path, entry));
    } finally {
      closeSync(fd);
    }
    setTimes(path, entry);
  };

  return {
    entry(entry) {
      entries += 1;
      if (entries > options.maxEntries)
        throw new LazarusError("LAYER_HOSTILE", `the archive has more than ${options.maxEntries} entries`, {
          hint: "split the archive, and import each part as a mission of its own",
        });
      guarded(entry.path, () => begin(entry));
    },
    data: writeData,
    close: () => guarded(open?.path ?? "", closeFile),
    withOptions(next) {
      options = next;
      madeByLayer = new Set();
    },
    finish() {
      for (const [path, entry] of bottomUp()) {
        if (options.owners) lchownSync(at(path), entry.uid, entry.gid);
        setTimes(path, entry);
      }
    },
    setDirectoryModes(currentRoot) {
      root = currentRoot;
      for (const [path, entry] of bottomUp()) {
        setXattrs(path, entry);
        chmodSync(at(path), entry.mode);
      }
    },
    get entries() {
      return entries;
    },
    flaws,
  };
}

/** The path relative to the root; refused when it leads elsewhere. */
export function cleanPath(path: string): string {
  if (path.startsWith("/")) throw hostile(path, "is absolute");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw hostile(path, "contains ..");
  if (path === "" || path.includes("\0")) throw hostile(path, "is not a file name");
  return names.length === 0 ? "." : names.join("/");
}

function described(directory: [string, TarEntry | undefined]): directory is [string, TarEntry] {
  return directory[1] !== undefined;
}

function isWhiteout(path: string): boolean {
  return path.slice(path.lastIndexOf("/") + 1).startsWith(WHITEOUT);
}

function unescapePath(path: string, spell: (name: string) => string): string {
  return path.split("/").map(spell).join("/");
}

function listBelow(directory: string | Buffer): string[] {
  return readdirSync(directory, { encoding: "buffer" }).map(decodePath);
}

function guarded(path: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENAMETOOLONG" || code === "EILSEQ" || code === "EFBIG" || code === "EINVAL")
      throw hostile(path, `cannot exist on this file system (${code})`);
    throw error;
  }
}

function hostile(path: string, problem: string): LazarusError {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  return new LazarusError("LAYER_HOSTILE", `the archive was refused: ${shown} ${problem}`, {
    hint: "list it with tar tvf; nothing was imported",
    details: { path },
  });
}
