// POSIX calls that Node lacks, through libc: flock, times in nanoseconds, xattrs, FIFOs, holes, subreaper.
// Loading costs about 10 ms, so it happens at the first call and never on the CLI's hot path. Where the library or
// the call is absent, `posix()` says why and callers degrade in the open (INV-6). Paths are bytes: names that are
// not UTF-8 pass through unharmed.
import { createRequire } from "node:module";
import type { FilePath } from "./disk.ts";

export interface Xattr {
  readonly name: string;
  readonly value: Buffer;
}

export interface Posix {
  /** Tries to take the kernel lock of an open file. False when someone else has it; those who share it do not mind each other. */
  tryLock(fd: number, how?: "alone" | "shared"): boolean;
  unlock(fd: number): void;
  /** Sets access and modification time to the nanosecond; never follows a link. */
  setTimes(path: FilePath, atimeNs: bigint, mtimeNs: bigint): void;
  /**
   * All extended attributes that this user may read; never follows a link. Where the file is open, it is asked first: most
   * have none, and that costs a quarter of a look by path.
   */
  listXattrs(path: FilePath, fd?: number): Xattr[];
  setXattr(path: FilePath, name: string, value: Uint8Array): void;
  removeXattr(path: FilePath, name: string): void;
  makeFifo(path: FilePath, mode: number): void;
  /** Start of the next data at or after `offset`, and where it ends; undefined when only a hole follows. */
  nextData(fd: number, offset: number): { start: number; end: number } | undefined;
  /** Makes all that was written to the file system of an open file durable: one call instead of an fsync per file. */
  syncFileSystem(fd: number): void;
  /** From now on, orphaned descendants of this process become its children (Linux only). */
  becomeSubreaper(): void;
  /** Lets an open file survive `process.execve`, which closes all but the standard streams. */
  keepOnExec(fd: number): void;
  /** Undoes what Node does to a signal at its start; what a process ignores, the program it becomes ignores, too. */
  restoreSignal(signal: number): void;
  /** A descriptor that stands for one process and no later one with its pid; undefined when there is none (Linux only). */
  openProcess(pid: number): number | undefined;
  /** Which of these processes have ended: one system call for all of them. */
  endedProcesses(fds: readonly number[]): number[];
  /** Sends one datagram to a unix socket; a name that begins with `@` is abstract. */
  sendDatagram(socketPath: string, text: string): void;
}

export type PosixSupport =
  | { readonly ok: true; readonly posix: Posix }
  | { readonly ok: false; readonly reason: string };

class PosixError extends Error {
  readonly code: string;
  constructor(call: string, code: string, path?: FilePath) {
    super(`${code}: ${call}${path === undefined ? "" : ` '${path.toString()}'`}`);
    this.code = code;
  }
}

let support: PosixSupport | undefined;

/** What this machine gives. The first call loads the library. */
export function posixSupport(): PosixSupport {
  support ??= loadPosix();
  return support;
}

function loadPosix(): PosixSupport {
  const { platform } = process;
  if (platform !== "linux" && platform !== "darwin")
    return { ok: false, reason: `no libc bindings for ${platform}` };
  try {
    return { ok: true, posix: bind(createRequire(import.meta.url)("koffi"), platform) };
  } catch (error) {
    return {
      ok: false,
      reason: `koffi could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;
const XATTR_NOFOLLOW_DARWIN = 1;
const PR_SET_CHILD_SUBREAPER = 36;
const F_SETFD = 2;
/** The same on every architecture of Linux; glibc has a name for it only since 2.36. */
const SYS_PIDFD_OPEN = 434;
const POLLIN = 1;
const POLLFD_BYTES = 8;
const AF_UNIX = 1;
const SOCK_DGRAM = 2;

// biome-ignore lint/suspicious/noExplicitAny: koffi describes C functions at run time.
type Koffi = any;

function bind(koffi: Koffi, platform: "linux" | "darwin"): Posix {
  const darwin = platform === "darwin";
  const libc = koffi.load(darwin ? "libSystem.B.dylib" : null);
  const codeOf = new Map<number, string>();
  for (const [name, number] of Object.entries(koffi.os.errno as Record<string, number>))
    codeOf.set(number, name);
  const lastCode = () => codeOf.get(koffi.errno()) ?? `errno ${koffi.errno()}`;
  const fail = (call: string, path?: FilePath): never => {
    throw new PosixError(call, lastCode(), path);
  };
  const cPath = (path: FilePath) =>
    Buffer.concat([typeof path === "string" ? Buffer.from(path) : path, Buffer.of(0)]);

  const flock = libc.func("int flock(int fd, int operation)");
  const utimensat = libc.func("int utimensat(int dirfd, const void *path, const void *times, int flags)");
  const mkfifo = libc.func("int mkfifo(const void *path, uint mode)");
  // macOS can only sync all file systems at once.
  const syncfs = darwin ? libc.func("void sync()") : libc.func("int syncfs(int fd)");
  const lseek = libc.func("int64_t lseek(int fd, int64_t offset, int whence)");
  // macOS adds a position and puts "do not follow" into options; Linux has l-variants.
  const listxattr = darwin
    ? libc.func("int64_t listxattr(const void *path, void *list, size_t size, int options)")
    : libc.func("int64_t llistxattr(const void *path, void *list, size_t size)");
  // The same for a path that is text: koffi writes it where C reads it, which spares two buffers for each file.
  const listTextXattr = darwin
    ? libc.func("int64_t listxattr(const char *path, void *list, size_t size, int options)")
    : libc.func("int64_t llistxattr(const char *path, void *list, size_t size)");
  const flistxattr = darwin
    ? libc.func("int64_t flistxattr(int fd, void *list, size_t size, int options)")
    : libc.func("int64_t flistxattr(int fd, void *list, size_t size)");
  const getxattr = darwin
    ? libc.func(
        "int64_t getxattr(const void *path, const char *name, void *value, size_t size, uint32_t position, int options)",
      )
    : libc.func("int64_t lgetxattr(const void *path, const char *name, void *value, size_t size)");
  const setxattr = darwin
    ? libc.func(
        "int setxattr(const void *path, const char *name, const void *value, size_t size, uint32_t position, int options)",
      )
    : libc.func(
        "int lsetxattr(const void *path, const char *name, const void *value, size_t size, int flags)",
      );
  const removexattr = darwin
    ? libc.func("int removexattr(const void *path, const char *name, int options)")
    : libc.func("int lremovexattr(const void *path, const char *name)");
  const noFollow = darwin ? [XATTR_NOFOLLOW_DARWIN] : [];

  const AT_FDCWD = darwin ? -2 : -100;
  const AT_SYMLINK_NOFOLLOW = darwin ? 0x20 : 0x100;
  const SEEK_DATA = darwin ? 4 : 3;
  const SEEK_HOLE = darwin ? 3 : 4;
  const NS_PER_SECOND = 1_000_000_000n;
  const timespecs = Buffer.alloc(32);
  let names = Buffer.alloc(4096);
  let scratch = Buffer.alloc(4096);

  const putTime = (offset: number, ns: bigint) => {
    // Floor division, so that times before 1970 keep a non-negative nanosecond part.
    let seconds = ns / NS_PER_SECOND;
    let rest = ns % NS_PER_SECOND;
    if (rest < 0n) {
      seconds -= 1n;
      rest += NS_PER_SECOND;
    }
    timespecs.writeBigInt64LE(seconds, offset);
    timespecs.writeBigInt64LE(rest, offset + 8);
  };

  const readXattr = (path: Buffer, name: string): Buffer | undefined => {
    for (;;) {
      const rest = darwin ? [0, XATTR_NOFOLLOW_DARWIN] : [];
      const size = Number(getxattr(path, name, scratch, scratch.length, ...rest));
      if (size >= 0) return Buffer.from(scratch.subarray(0, size));
      const code = lastCode();
      // Vanished, or not for us to read (trusted.*): as if it were not there.
      if (code !== "ERANGE") return undefined;
      scratch = Buffer.alloc(scratch.length * 4);
    }
  };

  // Asked many times a second: bound once, and only by who asks.
  const pidfdOpen = once(() => libc.func("long syscall(long number, int pid, uint flags)"));
  const poll = once(() => libc.func("int poll(void *fds, ulong count, int timeoutMs)"));

  return {
    tryLock(fd, how = "alone") {
      if (flock(fd, (how === "shared" ? LOCK_SH : LOCK_EX) | LOCK_NB) === 0) return true;
      const code = lastCode();
      if (code === "EAGAIN" || code === "EWOULDBLOCK") return false;
      throw new PosixError("flock", code);
    },
    unlock(fd) {
      if (flock(fd, LOCK_UN) !== 0) fail("flock");
    },
    setTimes(path, atimeNs, mtimeNs) {
      putTime(0, atimeNs);
      putTime(16, mtimeNs);
      if (utimensat(AT_FDCWD, cPath(path), timespecs, AT_SYMLINK_NOFOLLOW) !== 0) fail("utimensat", path);
    },
    listXattrs(path, fd) {
      if (fd !== undefined && Number(flistxattr(fd, names, names.length, ...(darwin ? [0] : []))) === 0)
        return [];
      const first = typeof path === "string" ? listTextXattr : listxattr;
      let size = Number(
        first(typeof path === "string" ? path : cPath(path), names, names.length, ...noFollow),
      );
      if (size === 0) return [];
      const bytes = cPath(path);
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
      const rest = darwin ? [0, XATTR_NOFOLLOW_DARWIN] : [0];
      if (setxattr(cPath(path), name, value, value.length, ...rest) !== 0) fail(`setxattr ${name}`, path);
    },
    removeXattr(path, name) {
      if (removexattr(cPath(path), name, ...noFollow) !== 0) fail(`removexattr ${name}`, path);
    },
    makeFifo(path, mode) {
      if (mkfifo(cPath(path), mode) !== 0) fail("mkfifo", path);
    },
    nextData(fd, offset) {
      const start = Number(lseek(fd, offset, SEEK_DATA));
      if (start < 0) {
        const code = lastCode();
        if (code === "ENXIO") return undefined;
        throw new PosixError("lseek", code);
      }
      const end = Number(lseek(fd, start, SEEK_HOLE));
      if (end < 0) fail("lseek");
      return { start, end };
    },
    syncFileSystem(fd) {
      if (darwin) syncfs();
      else if (syncfs(fd) !== 0) fail("syncfs");
    },
    becomeSubreaper() {
      if (darwin) throw new PosixError("prctl", "ENOSYS");
      const prctl = libc.func("int prctl(int option, ulong a, ulong b, ulong c, ulong d)");
      if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) !== 0) fail("prctl");
    },
    keepOnExec(fd) {
      const fcntl = libc.func("int fcntl(int fd, int command, int argument)");
      if (fcntl(fd, F_SETFD, 0) !== 0) fail("fcntl");
    },
    restoreSignal(number) {
      const signal = libc.func("void *signal(int number, void *handler)");
      signal(number, null);
    },
    openProcess(pid) {
      if (darwin) throw new PosixError("pidfd_open", "ENOSYS");
      const fd = Number(pidfdOpen()(SYS_PIDFD_OPEN, pid, 0));
      if (fd >= 0) return fd;
      const code = lastCode();
      if (code === "ESRCH") return undefined;
      throw new PosixError("pidfd_open", code);
    },
    endedProcesses(fds) {
      if (fds.length === 0) return [];
      const list = Buffer.alloc(fds.length * POLLFD_BYTES);
      for (const [i, fd] of fds.entries()) {
        list.writeInt32LE(fd, i * POLLFD_BYTES);
        list.writeInt16LE(POLLIN, i * POLLFD_BYTES + 4);
      }
      // A signal that cuts it short is no trouble: the next look is a moment away.
      if (poll()(list, fds.length, 0) <= 0) return [];
      return fds.filter((_, i) => list.readInt16LE(i * POLLFD_BYTES + 6) !== 0);
    },
    sendDatagram(socketPath, text) {
      const socket = libc.func("int socket(int domain, int type, int protocol)");
      const close = libc.func("int close(int fd)");
      const sendto = libc.func(
        "int64_t sendto(int fd, const void *data, size_t size, int flags, const void *address, uint length)",
      );
      const name = Buffer.from(socketPath.replace(/^@/, "\0"));
      const family = Buffer.alloc(2);
      if (darwin) family.writeUInt8(AF_UNIX, 1);
      else family.writeUInt16LE(AF_UNIX);
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

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
