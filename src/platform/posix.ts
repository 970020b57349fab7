// POSIX calls that Node lacks, through libc: flock, nanosecond times, xattrs, statx, FIFOs, sparse files, pidfds, inotify.
// The only file that loads koffi. Loading takes about 10 ms, so it happens on the first call and never on the CLI's hot path.
// Where the library or a call is missing, `posixSupport()` says why, and callers report it (INV-6). Paths are bytes.
import { createRequire } from "node:module";
import type { FilePath } from "./disk.ts";
import { messageOf } from "./errors.ts";
import { type CFunction, type Libc, openLibc, PosixError, toCPath } from "./libc/libc.ts";
import { bindMappings, type Mapping } from "./libc/mappings.ts";
import { bindProcessSet, type ProcessSet } from "./libc/process-set.ts";

export interface Xattr {
  readonly name: string;
  readonly value: Buffer;
}

export interface Posix {
  /** Tries to take the kernel lock of an open file, exclusive unless `shared`. False when another process holds it. */
  tryLock(fd: number, mode?: "exclusive" | "shared"): boolean;
  /** Sets access and modification time to the nanosecond; does not follow links. */
  setTimes(path: FilePath, atimeNs: bigint, mtimeNs: bigint): void;
  /** The same for an open file. */
  setOpenTimes(fd: number, atimeNs: bigint, mtimeNs: bigint): void;
  /** Fills `words` with struct statx of an open file or a path; does not follow links. False when it cannot (macOS, no file). */
  statx(file: number | string, words: Uint32Array): boolean;
  /** The same for a name in an open directory. */
  statxIn(directory: number, name: string, words: Uint32Array): boolean;
  /** All extended attributes that this user may read; does not follow links. */
  listXattrs(path: FilePath): Xattr[];
  /** False if an open file has none, as most files do: takes a quarter of the time of a lookup by path. */
  hasXattrs(fd: number): boolean;
  setXattr(path: FilePath, name: string, value: Uint8Array): void;
  removeXattr(path: FilePath, name: string): void;
  makeFifo(path: FilePath, mode: number): void;
  /** Opens a file below an open directory, if no component of its path is a link. Negative on any failure (Linux only). */
  openBeneath(directory: number, path: string, flags: number): number;
  /** The next range of data at or after `offset`; undefined when only a hole follows. */
  nextData(fd: number, offset: number): { start: number; end: number } | undefined;
  /** Syncs the whole file system of an open file: one call instead of an fsync per file. */
  syncFileSystem(fd: number): void;
  /** Makes orphaned descendants of this process its children from now on (Linux only). */
  becomeSubreaper(): void;
  /** Clears FD_CLOEXEC, so that an open file survives `process.execve`. */
  keepOnExec(fd: number): void;
  /** Restores a signal's default action. Node ignores SIGPIPE, and an ignored signal stays ignored across exec. */
  restoreSignal(signal: number): void;
  /** An empty set of processes; the caller disposes of it (Linux only). */
  openProcessSet(): ProcessSet;
  /** Files that a process, by its open `/proc/<pid>/maps`, has mapped shared and writable; undefined before Linux 6.11. */
  sharedMappings(maps: number): Mapping[] | undefined;
  /** Sends one datagram to a unix socket; a name that starts with `@` is abstract. */
  sendDatagram(socketPath: string, text: string): void;
  /** A new inotify queue, non-blocking; the caller closes it (Linux only). */
  openInotify(): number;
  /** Watches a path or changes the mask of its watch; returns the watch descriptor. */
  addWatch(fd: number, path: FilePath, mask: number): number;
  /** Removes a watch. It is not an error if the kernel has already removed it. */
  removeWatch(fd: number, wd: number): void;
}

export type PosixSupport =
  | { readonly ok: true; readonly posix: Posix }
  | { readonly ok: false; readonly reason: string };

let support: PosixSupport | undefined;

/** What this machine supports. The first call loads the library. */
export function posixSupport(): PosixSupport {
  support ??= loadPosix();
  return support;
}

function loadPosix(): PosixSupport {
  const { platform } = process;
  if (platform !== "linux" && platform !== "darwin")
    return { ok: false, reason: `no libc bindings for ${platform}` };
  try {
    const libc = openLibc(createRequire(import.meta.url)("koffi"), platform === "darwin");
    const posix = {
      ...bindFiles(libc),
      ...bindXattrs(libc),
      ...bindProcesses(libc),
      ...bindSockets(libc),
      ...bindInotify(libc),
    };
    return { ok: true, posix };
  } catch (error) {
    return { ok: false, reason: `koffi could not be loaded: ${messageOf(error)}` };
  }
}

/** Opens another shared library. Throws where it, or koffi, is missing. */
export function openLibrary(file: string): { func(prototype: string): CFunction } {
  return createRequire(import.meta.url)("koffi").load(file);
}

const LOCK = { shared: 1, exclusive: 2, nonBlocking: 4 };
const NS_PER_SECOND = 1_000_000_000n;
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;

type FileCalls = Omit<
  Posix,
  keyof ReturnType<typeof bindXattrs> | keyof ProcessCalls | "sendDatagram" | keyof InotifyCalls
>;

function bindFiles({ darwin, func, lazy, lastCode, fail }: Libc): FileCalls {
  const flock = func("int flock(int fd, int operation)");
  const utimensat = func("int utimensat(int dirfd, const void *path, const void *times, int flags)");
  const futimens = func("int futimens(int fd, const void *times)");
  const statx = lazy("int statx(int fd, const char *path, int flags, uint mask, void *into)");
  const openat2 = lazy("long syscall(long number, int fd, const char *path, const void *how, size_t size)");
  const how = Buffer.alloc(24).fill(0x0c, 16, 17); // RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS
  const mkfifo = func("int mkfifo(const void *path, uint mode)");
  // macOS can only sync all file systems at once.
  const syncfs = darwin ? func("void sync()") : func("int syncfs(int fd)");
  const lseek = func("int64_t lseek(int fd, int64_t offset, int whence)");
  const AT_FDCWD = darwin ? -2 : -100;
  const AT_SYMLINK_NOFOLLOW = darwin ? 0x20 : 0x100;
  const [SEEK_DATA, SEEK_HOLE] = darwin ? [4, 3] : [3, 4];
  const timespecs = Buffer.alloc(32);
  let hasStatx = !darwin;
  const callStatx = (fd: number, path: string, flags: number, words: Uint32Array): boolean => {
    try {
      return hasStatx && statx(fd, path, flags, STATX_BASIC_STATS, words) === 0;
    } catch {
      // An older libc without statx.
      hasStatx = false;
      return false;
    }
  };
  return {
    tryLock(fd, mode = "exclusive") {
      const done = flock(fd, LOCK[mode] | LOCK.nonBlocking) === 0;
      return done || (/^(EAGAIN|EWOULDBLOCK)$/.test(lastCode()) ? false : fail("flock"));
    },
    setOpenTimes(fd, atimeNs, mtimeNs) {
      putTimespec(timespecs, 0, atimeNs);
      putTimespec(timespecs, 16, mtimeNs);
      if (futimens(fd, timespecs) !== 0) fail("futimens");
    },
    setTimes(path, atimeNs, mtimeNs) {
      putTimespec(timespecs, 0, atimeNs);
      putTimespec(timespecs, 16, mtimeNs);
      if (utimensat(AT_FDCWD, toCPath(path), timespecs, AT_SYMLINK_NOFOLLOW) !== 0) fail("utimensat", path);
    },
    statx: (file, words) =>
      typeof file === "number"
        ? callStatx(file, "", AT_EMPTY_PATH, words)
        : callStatx(AT_FDCWD, file, AT_SYMLINK_NOFOLLOW, words),
    statxIn: (directory, name, words) => callStatx(directory, name, AT_SYMLINK_NOFOLLOW, words),
    openBeneath(directory, path, flags) {
      how.writeUInt32LE(flags, 0);
      return darwin ? -1 : Number(openat2(437, directory, path, how, how.length));
    },
    makeFifo(path, mode) {
      if (mkfifo(toCPath(path), mode) !== 0) fail("mkfifo", path);
    },
    nextData(fd, offset) {
      const start = Number(lseek(fd, offset, SEEK_DATA));
      if (start < 0) {
        if (lastCode() === "ENXIO") return undefined;
        fail("lseek");
      }
      const end = Number(lseek(fd, start, SEEK_HOLE));
      if (end < 0) fail("lseek");
      return { start, end };
    },
    syncFileSystem(fd) {
      if (darwin) syncfs();
      else if (syncfs(fd) !== 0) fail("syncfs");
    },
  };
}

/** Floor division: times before 1970 need a non-negative nanosecond part. */
function putTimespec(timespecs: Buffer, offset: number, ns: bigint): void {
  const rest = ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  timespecs.writeBigInt64LE((ns - rest) / NS_PER_SECOND, offset);
  timespecs.writeBigInt64LE(rest, offset + 8);
}

const XATTR_NOFOLLOW_DARWIN = 1;

function bindXattrs(libc: Libc): Pick<Posix, "listXattrs" | "hasXattrs" | "setXattr" | "removeXattr"> {
  const { darwin, func, lastCode, fail } = libc;
  // macOS adds a position and takes "do not follow" as an option; Linux has l-variants.
  const [list, flist, get, set, remove] = darwin
    ? [
        ["listxattr", "void *list, size_t size, int options"],
        "int64_t flistxattr(int fd, void *list, size_t size, int options)",
        "int64_t getxattr(const void *path, const char *name, void *value, size_t size, uint32_t position, int options)",
        "int setxattr(const void *path, const char *name, const void *value, size_t size, uint32_t position, int options)",
        "int removexattr(const void *path, const char *name, int options)",
      ]
    : [
        ["llistxattr", "void *list, size_t size"],
        "int64_t flistxattr(int fd, void *list, size_t size)",
        "int64_t lgetxattr(const void *path, const char *name, void *value, size_t size)",
        "int lsetxattr(const void *path, const char *name, const void *value, size_t size, int flags)",
        "int lremovexattr(const void *path, const char *name)",
      ];
  const listxattr = func(`int64_t ${list[0]}(const void *path, ${list[1]})`);
  // For a path that is a string: koffi encodes it in place, which saves two buffers per file.
  const listStringXattr = func(`int64_t ${list[0]}(const char *path, ${list[1]})`);
  const flistxattr = func(flist);
  const getxattr = func(get);
  const setxattr = func(set);
  const removexattr = func(remove);
  const noFollow = darwin ? [XATTR_NOFOLLOW_DARWIN] : [];
  const darwinZero = darwin ? [0] : [];
  let names = Buffer.alloc(4096);
  let scratch = Buffer.alloc(4096);

  const readXattr = (path: Buffer, name: string): Buffer | undefined => {
    for (;;) {
      const size = Number(getxattr(path, name, scratch, scratch.length, ...darwinZero, ...noFollow));
      if (size >= 0) return Buffer.from(scratch.subarray(0, size));
      // Removed in the meantime, or not readable for this user (trusted.*).
      if (lastCode() !== "ERANGE") return undefined;
      scratch = Buffer.alloc(scratch.length * 4);
    }
  };

  return {
    hasXattrs: (fd) => Number(flistxattr(fd, names, names.length, ...darwinZero)) !== 0,
    listXattrs(path) {
      let size = Number(
        typeof path === "string"
          ? listStringXattr(path, names, names.length, ...noFollow)
          : listxattr(toCPath(path), names, names.length, ...noFollow),
      );
      if (size === 0) return [];
      const bytes = toCPath(path);
      while (size < 0) {
        const code = lastCode();
        if (code === "ENOTSUP" || code === "EOPNOTSUPP") return [];
        if (code !== "ERANGE") fail("llistxattr", path);
        names = Buffer.alloc(names.length * 4);
        size = Number(listxattr(bytes, names, names.length, ...noFollow));
      }
      if (size === 0) return [];
      const found: Xattr[] = [];
      for (const name of names.toString("utf8", 0, size - 1).split("\0")) {
        const value = readXattr(bytes, name);
        if (value !== undefined) found.push({ name, value });
      }
      return found;
    },
    setXattr(path, name, value) {
      if (setxattr(toCPath(path), name, value, value.length, 0, ...noFollow) !== 0)
        fail(`setxattr ${name}`, path);
    },
    removeXattr(path, name) {
      if (removexattr(toCPath(path), name, ...noFollow) !== 0) fail(`removexattr ${name}`, path);
    },
  };
}

const PR_SET_CHILD_SUBREAPER = 36;
const F_SETFD = 2;

type ProcessCalls = Pick<
  Posix,
  "becomeSubreaper" | "keepOnExec" | "restoreSignal" | "openProcessSet" | "sharedMappings"
>;

function bindProcesses(libc: Libc): ProcessCalls {
  const { darwin, lazy, fail } = libc;
  const prctl = lazy("int prctl(int option, ulong a, ulong b, ulong c, ulong d)");
  const fcntl = lazy("int fcntl(int fd, int command, int argument)");
  const signalAction = lazy("void *signal(int number, void *handler)");
  return {
    becomeSubreaper() {
      if (darwin) throw new PosixError("prctl", "ENOSYS");
      if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) !== 0) fail("prctl");
    },
    keepOnExec(fd) {
      if (fcntl(fd, F_SETFD, 0) !== 0) fail("fcntl");
    },
    restoreSignal(signal) {
      signalAction(signal, null);
    },
    openProcessSet: bindProcessSet(libc),
    sharedMappings: bindMappings(libc),
  };
}

const AF_UNIX = 1;
const SOCK_DGRAM = 2;

function bindSockets({ darwin, lazy, fail }: Libc): Pick<Posix, "sendDatagram"> {
  const socket = lazy("int socket(int domain, int type, int protocol)");
  const close = lazy("int close(int fd)");
  const sendto = lazy(
    "int64_t sendto(int fd, const void *data, size_t size, int flags, const void *address, uint length)",
  );
  return {
    sendDatagram(socketPath, text) {
      const name = Buffer.from(socketPath.replace(/^@/, "\0"));
      const family = darwin ? Buffer.of(0, AF_UNIX) : Buffer.of(AF_UNIX, 0);
      const address = Buffer.concat([family, name, ...(name[0] === 0 ? [] : [Buffer.of(0)])]);
      const data = Buffer.from(text);
      const fd = socket(AF_UNIX, SOCK_DGRAM, 0);
      if (fd < 0) fail("socket");
      try {
        if (Number(sendto(fd, data, data.length, 0, address, address.length)) < 0) fail("sendto", socketPath);
      } finally {
        close(fd);
      }
    },
  };
}

/** IN_NONBLOCK and IN_CLOEXEC, which equal O_NONBLOCK and O_CLOEXEC. */
const INOTIFY_FLAGS = 0o4000 | 0o2000000;

type InotifyCalls = Pick<Posix, "openInotify" | "addWatch" | "removeWatch">;

function bindInotify({ darwin, lazy, lastCode, fail }: Libc): InotifyCalls {
  const init = lazy("int inotify_init1(int flags)");
  const add = lazy("int inotify_add_watch(int fd, const void *path, uint32_t mask)");
  const remove = lazy("int inotify_rm_watch(int fd, int wd)");
  return {
    openInotify() {
      if (darwin) throw new PosixError("inotify_init1", "ENOSYS");
      const fd = init(INOTIFY_FLAGS);
      return fd < 0 ? fail("inotify_init1") : fd;
    },
    addWatch(fd, path, mask) {
      const wd = add(fd, toCPath(path), mask);
      return wd < 0 ? fail("inotify_add_watch", path) : wd;
    },
    removeWatch(fd, wd) {
      if (remove(fd, wd) !== 0 && lastCode() !== "EINVAL") fail("inotify_rm_watch");
    },
  };
}
