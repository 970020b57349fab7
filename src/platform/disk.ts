// The file-system calls that durable writes use, as an injected interface (INV-9): production uses `systemDisk`, tests use
// a disk that is full, fails or loses power. All calls are synchronous, so writes happen in the order of the code. Reads
// do not go through here, except for the last byte of a log.
import fs from "node:fs";

export type FilePath = string | Buffer;

export interface Disk {
  /** Creates a file and opens it for writing; EEXIST when it exists. */
  create(path: FilePath, mode: number): number;
  openAppend(path: FilePath, mode: number): number;
  write(fd: number, data: Uint8Array): void;
  /** The last byte of a file opened with `openAppend`; undefined when it is empty. */
  lastByte(fd: number): number | undefined;
  fsync(fd: number): void;
  close(fd: number): void;
  rename(from: FilePath, to: FilePath): void;
  /** Hard-links `to` to `from`; EEXIST when `to` exists: an atomic "create if absent". */
  link(from: FilePath, to: FilePath): void;
  unlink(path: FilePath): void;
  mkdir(path: FilePath, mode: number): void;
  /** Makes the entries of a directory durable. */
  fsyncDirectory(path: FilePath): void;
}

export const systemDisk: Disk = {
  create: (path, mode) => fs.openSync(path, "wx", mode),
  openAppend: (path, mode) => fs.openSync(path, "a+", mode),
  write(fd, data) {
    let offset = 0;
    while (offset < data.length) offset += fs.writeSync(fd, data, offset, data.length - offset);
  },
  lastByte(fd) {
    const byte = Buffer.alloc(1);
    const { size } = fs.fstatSync(fd);
    return size > 0 && fs.readSync(fd, byte, 0, 1, size - 1) === 1 ? byte[0] : undefined;
  },
  fsync: (fd) => fs.fsyncSync(fd),
  close: (fd) => fs.closeSync(fd),
  rename: (from, to) => fs.renameSync(from, to),
  link: (from, to) => fs.linkSync(from, to),
  unlink: (path) => fs.unlinkSync(path),
  mkdir: (path, mode) => fs.mkdirSync(path, { mode }),
  fsyncDirectory(path) {
    const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  },
};
