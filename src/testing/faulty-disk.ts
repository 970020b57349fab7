// Wraps a Disk and fails chosen calls with the errors of real disks: full, broken, read-only, too many open files. A
// failed call has the side effects of a real one: half of a write arrives, a failed close has closed the file. All calls
// are recorded, so that a test can first count them and then fail each in turn.
import type { Disk, FilePath } from "../platform/disk.ts";
import { createSystemError } from "./system-error.ts";

/** The error code of an injected fault. */
export type FaultCode = "ENOSPC" | "EIO" | "EROFS" | "EMFILE" | "EACCES" | "EDQUOT";

/** A recorded call of the disk. */
export interface DiskCall {
  /** 1 for the first call on this disk. */
  readonly number: number;
  readonly method: keyof Disk;
  /** Its path; for calls on an open file, the path it was opened with. */
  readonly path: string;
  readonly dest?: string;
}

/** A disk call to fail, and how. */
export interface Fault {
  readonly code: FaultCode;
  /** Which calls fail: the nth one, or those that the predicate selects. */
  readonly at: number | ((call: DiskCall) => boolean);
}

/** A disk with injected faults. */
export interface FaultyDisk extends Disk {
  readonly calls: readonly DiskCall[];
}

const SYSCALLS: Readonly<Record<keyof Disk, string>> = {
  create: "open",
  openAppend: "open",
  write: "write",
  lastByte: "read",
  fsync: "fsync",
  close: "close",
  rename: "rename",
  link: "link",
  unlink: "unlink",
  mkdir: "mkdir",
  fsyncDirectory: "fsync",
};

/** Calls on an open file; their errors have no path. */
const ON_OPEN_FILE: ReadonlySet<keyof Disk> = new Set([
  "write",
  "lastByte",
  "fsync",
  "close",
  "fsyncDirectory",
]);

/** Creates a disk that fails the given calls. */
export function createFaultyDisk(disk: Disk, ...faults: readonly Fault[]): FaultyDisk {
  const calls: DiskCall[] = [];
  const paths = new Map<number, string>();

  /** Records the call, and throws if it is to fail. `sideEffect` is what a failing call still does. */
  const begin = (method: keyof Disk, path: string, dest?: string, sideEffect?: () => void): void => {
    const call: DiskCall = {
      number: calls.length + 1,
      method,
      path,
      ...(dest === undefined ? {} : { dest }),
    };
    calls.push(call);
    const fault = faults.find(({ at }) => (typeof at === "number" ? at === call.number : at(call)));
    if (fault === undefined) return;
    sideEffect?.();
    const named = !ON_OPEN_FILE.has(method);
    throw createSystemError(fault.code, {
      syscall: SYSCALLS[method],
      path: named ? path : undefined,
      dest: named ? dest : undefined,
    });
  };
  const pathOf = (fd: number) => paths.get(fd) ?? "";
  const remember = (path: FilePath, fd: number): number => {
    paths.set(fd, path.toString());
    return fd;
  };

  return {
    calls,
    create(path, mode) {
      begin("create", path.toString());
      return remember(path, disk.create(path, mode));
    },
    openAppend(path, mode) {
      begin("openAppend", path.toString());
      return remember(path, disk.openAppend(path, mode));
    },
    write(fd, data) {
      begin("write", pathOf(fd), undefined, () => disk.write(fd, data.subarray(0, data.length >> 1)));
      disk.write(fd, data);
    },
    lastByte(fd) {
      begin("lastByte", pathOf(fd));
      return disk.lastByte(fd);
    },
    fsync(fd) {
      begin("fsync", pathOf(fd));
      disk.fsync(fd);
    },
    close(fd) {
      begin("close", pathOf(fd), undefined, () => disk.close(fd));
      disk.close(fd);
      paths.delete(fd);
    },
    rename(from, to) {
      begin("rename", from.toString(), to.toString());
      disk.rename(from, to);
    },
    link(from, to) {
      begin("link", from.toString(), to.toString());
      disk.link(from, to);
    },
    unlink(path) {
      begin("unlink", path.toString());
      disk.unlink(path);
    },
    mkdir(path, mode) {
      begin("mkdir", path.toString());
      disk.mkdir(path, mode);
    },
    fsyncDirectory(path) {
      begin("fsyncDirectory", path.toString());
      disk.fsyncDirectory(path);
    },
  };
}
