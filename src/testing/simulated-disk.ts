// An in-memory Disk that can lose power (INV-1, INV-9). It guarantees only what POSIX does: fsync of a file saves its
// content, fsync of a directory saves the names in it, and a new directory is a name in its parent. `crash` returns a
// disk as it may look afterwards; what was synced is always present and unchanged. The read methods are for assertions.
import { posix } from "node:path";
import type { Disk, FilePath } from "../platform/disk.ts";
import {
  applyWrite,
  change,
  createDirectory,
  createFile,
  type DirectoryNode,
  type FileNode,
  type Node,
} from "./disk-tree.ts";
import { survivor } from "./power-loss.ts";
import type { Random } from "./seeded-ids.ts";
import { createSystemError } from "./system-error.ts";

/** A disk in memory that can lose power. */
export interface SimulatedDisk extends Disk {
  /** The disk as it may look after a power loss now. This disk is not changed. */
  crash(random: Random): SimulatedDisk;
  /** After `calls` more calls, every call fails with EIO and does nothing. */
  cutPowerAfter(calls: number): void;
  /** Ends the failures and closes all open files, as when a process was killed but the machine kept running. */
  restorePower(): void;
  /** Number of calls so far, including failed ones. */
  readonly calls: number;
  readFile(path: FilePath): Buffer;
  /** Names in a directory, sorted. */
  list(path: FilePath): string[];
  /** The type of a path; undefined when it does not exist. */
  kindOf(path: FilePath): "file" | "directory" | undefined;
  modeOf(path: FilePath): number;
}

interface OpenFile {
  readonly node: FileNode;
  readonly append: boolean;
  position: number;
}

const FIRST_FD = 100;

/** Creates an empty disk in memory. */
export function createSimulatedDisk(): SimulatedDisk {
  return diskOver(createDirectory(0o755));
}

function diskOver(root: DirectoryNode): SimulatedDisk {
  const open = new Map<number, OpenFile>();
  let nextFd = FIRST_FD;
  let calls = 0;
  let callsLeft = Number.POSITIVE_INFINITY;

  const begin = (syscall: string, path?: FilePath, dest?: FilePath) => {
    calls += 1;
    callsLeft -= 1;
    if (callsLeft < 0)
      throw createSystemError("EIO", { syscall, path: path?.toString(), dest: dest?.toString() });
  };

  const lookUp = (key: string, fail: (code: string) => never): Node => {
    let node: Node = root;
    for (const name of key.split("/")) {
      if (name === "") continue;
      if (node.kind !== "directory") return fail("ENOTDIR");
      const next: Node | undefined = node.names.get(name);
      if (next === undefined) return fail("ENOENT");
      node = next;
    }
    return node;
  };

  const find = (path: FilePath, syscall: string, dest?: FilePath): Node =>
    lookUp(keyOf(path), (code) => {
      throw createSystemError(code, { syscall, path: path.toString(), dest: dest?.toString() });
    });

  /** The directory that holds the last name of `path`, whether or not that name exists. */
  const parentOf = (path: FilePath, fail: (code: string) => never) => {
    const key = keyOf(path);
    const parent = lookUp(posix.dirname(key), fail);
    if (parent.kind !== "directory") return fail("ENOTDIR");
    const name = posix.basename(key);
    return { parent, name, node: name === "" ? (root as Node) : parent.names.get(name) };
  };

  const openFile = (node: FileNode, append: boolean): number => {
    const fd = nextFd++;
    open.set(fd, { node, append, position: 0 });
    return fd;
  };

  const opened = (fd: number, syscall: string): OpenFile => {
    const file = open.get(fd);
    if (file === undefined) throw createSystemError("EBADF", { syscall });
    return file;
  };

  return {
    create(path, mode) {
      begin("open", path);
      const fail = failing("open", path);
      const { parent, name, node } = parentOf(path, fail);
      if (node !== undefined) return fail("EEXIST");
      const file = createFile(mode);
      change(parent, { added: { name, node: file }, operation: {} });
      return openFile(file, false);
    },
    openAppend(path, mode) {
      begin("open", path);
      const fail = failing("open", path);
      const { parent, name, node } = parentOf(path, fail);
      if (node?.kind === "directory") return fail("EISDIR");
      if (node !== undefined) return openFile(node, true);
      const file = createFile(mode);
      change(parent, { added: { name, node: file }, operation: {} });
      return openFile(file, true);
    },
    write(fd, data) {
      begin("write");
      const file = opened(fd, "write");
      const offset = file.append ? file.node.content.length : file.position;
      const write = { offset, data: Buffer.from(data) };
      file.node.content = applyWrite(file.node.content, write);
      file.node.pending.push(write);
      file.position = offset + data.length;
    },
    lastByte(fd) {
      begin("read");
      return opened(fd, "read").node.content.at(-1);
    },
    fsync(fd) {
      begin("fsync");
      const { node } = opened(fd, "fsync");
      node.synced = node.content;
      node.pending = [];
    },
    close(fd) {
      begin("close");
      opened(fd, "close");
      open.delete(fd);
    },
    rename(from, to) {
      begin("rename", from, to);
      const fail = failing("rename", from, to);
      const source = parentOf(from, fail);
      const target = parentOf(to, fail);
      const moved = source.node ?? fail("ENOENT");
      // POSIX: two names of one file; the rename succeeds and does nothing.
      if (moved === target.node) return;
      if (moved.kind === "directory" && `${keyOf(to)}/`.startsWith(`${keyOf(from)}/`)) return fail("EINVAL");
      if (target.node !== undefined) {
        if (moved.kind === "file" && target.node.kind === "directory") return fail("EISDIR");
        if (moved.kind === "directory" && target.node.kind === "file") return fail("ENOTDIR");
        if (target.node.kind === "directory" && target.node.names.size > 0) return fail("ENOTEMPTY");
      }
      const operation = {};
      const added = { name: target.name, node: moved };
      if (source.parent === target.parent) {
        change(source.parent, { removed: source.name, added, operation });
      } else {
        change(target.parent, { added, operation });
        change(source.parent, { removed: source.name, operation });
      }
    },
    link(from, to) {
      begin("link", from, to);
      const fail = failing("link", from, to);
      const node = find(from, "link", to);
      const target = parentOf(to, fail);
      if (target.node !== undefined) return fail("EEXIST");
      if (node.kind === "directory") return fail("EPERM");
      change(target.parent, { added: { name: target.name, node }, operation: {} });
    },
    unlink(path) {
      begin("unlink", path);
      const fail = failing("unlink", path);
      const { parent, name, node } = parentOf(path, fail);
      if (node === undefined) return fail("ENOENT");
      if (node.kind === "directory") return fail("EISDIR");
      change(parent, { removed: name, operation: {} });
    },
    mkdir(path, mode) {
      begin("mkdir", path);
      const fail = failing("mkdir", path);
      const { parent, name, node } = parentOf(path, fail);
      if (node !== undefined) return fail("EEXIST");
      change(parent, { added: { name, node: createDirectory(mode) }, operation: {} });
    },
    fsyncDirectory(path) {
      begin("fsync", path);
      const node = find(path, "open");
      if (node.kind !== "directory")
        throw createSystemError("ENOTDIR", { syscall: "open", path: path.toString() });
      node.synced = new Map(node.names);
      node.pending = [];
    },

    crash: (random) => diskOver(survivor(root, random)),
    cutPowerAfter(calls) {
      callsLeft = calls;
    },
    restorePower() {
      callsLeft = Number.POSITIVE_INFINITY;
      open.clear();
    },
    get calls() {
      return calls;
    },

    readFile(path) {
      const node = find(path, "open");
      if (node.kind === "directory") throw createSystemError("EISDIR", { syscall: "read" });
      return Buffer.from(node.content);
    },
    list(path) {
      const node = find(path, "scandir");
      if (node.kind !== "directory")
        throw createSystemError("ENOTDIR", { syscall: "scandir", path: path.toString() });
      return [...node.names.keys()].map((name) => Buffer.from(name, "latin1").toString()).sort();
    },
    kindOf(path) {
      try {
        return find(path, "stat").kind;
      } catch {
        return undefined;
      }
    },
    modeOf: (path) => find(path, "stat").mode,
  };
}

/** One character per byte, so that names that are not UTF-8 stay distinct. */
function keyOf(path: FilePath): string {
  const bytes = typeof path === "string" ? Buffer.from(path) : path;
  return posix.resolve("/", bytes.toString("latin1"));
}

function failing(syscall: string, path: FilePath, dest?: FilePath): (code: string) => never {
  return (code) => {
    throw createSystemError(code, { syscall, path: path.toString(), dest: dest?.toString() });
  };
}
