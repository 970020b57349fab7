// Unpacks the entries of hostile archives below one directory and nowhere else. A path may not climb, start at the root
// or pass through anything but directories made here; links lie where they are told, and nothing is ever written through
// one. Devices are listed, not made. The directory must be new and private: nobody else writes in it.
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
  /** Give files to the owners that the archive names; only root can. */
  readonly owners: boolean;
  /** Keep setuid and setgid bits and privileged xattrs: for archives of one's own. */
  readonly trusted: boolean;
  /** More entries than this are refused. */
  readonly maxEntries: number;
  /** Set while a layer is unpacked: whiteouts delete, and names that Lazarus escaped are what they were. */
  readonly layer?: { readonly unescape: (name: string) => string };
}

export interface Unpacker extends TarSink {
  /** The same tree, read with other options: the next layer. */
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
  /** Directories made here; the only ones that anything is put into. */
  const directories = new Map<string, TarEntry | undefined>([[".", undefined]]);
  /** What this layer has made: an opaque mark hides only what lies below it. */
  let fresh = new Set<string>();
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

  /** Takes away what stands at a path: a later entry of the same name wins, as in every tar. */
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
    fresh.add(path);
  };

  const setXattrs = (path: string, entry: TarEntry) => {
    for (const [name, value] of entry.xattrs ?? []) {
      if (!options.trusted && !HARMLESS_XATTR.test(name)) {
        flaws.push({ path, kind: "degraded", reason: `the privileged attribute ${name} was not taken over` });
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
    flaws.push({ path, kind: "degraded", reason: "its setuid or setgid bit was not taken over" });
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
        if (entry.target === undefined || entry.target === "") throw hostile(real, "is a link to nothing");
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
      throw hostile(path, `is a hard link to ${target}, which is no file of this archive`);
    if (target === path) return;
    // link(2) follows symbolic links on some systems: a second link of the same words is as good.
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
      for (const known of listBelow(at(parent))) if (!fresh.has(below + known)) clear(below + known);
      return;
    }
    const victim = options.layer!.unescape(name.slice(WHITEOUT.length));
    clear(cleanPath(parent === "." ? victim : `${parent}/${victim}`));
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
      fresh = new Set();
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

/** The path below the root that an archive means; refused when it means one elsewhere. */
export function cleanPath(path: string): string {
  if (path.startsWith("/")) throw hostile(path, "is absolute");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw hostile(path, "climbs out with ..");
  if (path === "" || path.includes("\0")) throw hostile(path, "is no name");
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

function hostile(path: string, what: string): LazarusError {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  return new LazarusError("LAYER_HOSTILE", `the archive was refused: ${shown} ${what}`, {
    hint: "look inside with tar tvf before you trust it; nothing was unpacked",
    details: { path },
  });
}
