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
import { afterPowerLoss } from "./power-loss.ts";
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
  return new MemoryDisk(createDirectory(0o755));
}

/** Throws the system error with this code. */
type Fail = (code: string) => never;

class MemoryDisk implements SimulatedDisk {
  calls = 0;
  readonly #root: DirectoryNode;
  readonly #open = new Map<number, OpenFile>();
  #nextFd = FIRST_FD;
  #callsLeft = Number.POSITIVE_INFINITY;

  constructor(root: DirectoryNode) {
    this.#root = root;
  }

  create(path: FilePath, mode: number): number {
    this.#begin("open", path);
    const fail: Fail = failing("open", path);
    const { parent, name, node } = this.#parentOf(path, fail);
    if (node !== undefined) return fail("EEXIST");
    const file = createFile(mode);
    change(parent, { added: { name, node: file }, operation: {} });
    return this.#openFile(file, false);
  }

  openAppend(path: FilePath, mode: number): number {
    this.#begin("open", path);
    const fail: Fail = failing("open", path);
    const { parent, name, node } = this.#parentOf(path, fail);
    if (node?.kind === "directory") return fail("EISDIR");
    if (node !== undefined) return this.#openFile(node, true);
    const file = createFile(mode);
    change(parent, { added: { name, node: file }, operation: {} });
    return this.#openFile(file, true);
  }

  write(fd: number, data: Uint8Array): void {
    this.#begin("write");
    const file = this.#opened(fd, "write");
    const offset = file.append ? file.node.content.length : file.position;
    const write = { offset, data: Buffer.from(data) };
    file.node.content = applyWrite(file.node.content, write);
    file.node.pending.push(write);
    file.position = offset + data.length;
  }

  lastByte(fd: number): number | undefined {
    this.#begin("read");
    return this.#opened(fd, "read").node.content.at(-1);
  }

  fsync(fd: number): void {
    this.#begin("fsync");
    const { node } = this.#opened(fd, "fsync");
    node.synced = node.content;
    node.pending = [];
  }

  close(fd: number): void {
    this.#begin("close");
    this.#opened(fd, "close");
    this.#open.delete(fd);
  }

  rename(from: FilePath, to: FilePath): void {
    this.#begin("rename", from, to);
    const fail: Fail = failing("rename", from, to);
    const source = this.#parentOf(from, fail);
    const target = this.#parentOf(to, fail);
    const moved = source.node ?? fail("ENOENT");
    // POSIX: two names of one file; the rename succeeds and does nothing.
    if (moved === target.node) return;
    if (moved.kind === "directory" && `${keyOf(to)}/`.startsWith(`${keyOf(from)}/`)) fail("EINVAL");
    if (target.node !== undefined) {
      if (moved.kind === "file" && target.node.kind === "directory") fail("EISDIR");
      if (moved.kind === "directory" && target.node.kind === "file") fail("ENOTDIR");
      if (target.node.kind === "directory" && target.node.names.size > 0) fail("ENOTEMPTY");
    }
    const operation = {};
    const added = { name: target.name, node: moved };
    if (source.parent === target.parent) {
      change(source.parent, { removed: source.name, added, operation });
    } else {
      change(target.parent, { added, operation });
      change(source.parent, { removed: source.name, operation });
    }
  }

  link(from: FilePath, to: FilePath): void {
    this.#begin("link", from, to);
    const fail: Fail = failing("link", from, to);
    const node = this.#find(from, "link", to);
    const target = this.#parentOf(to, fail);
    if (target.node !== undefined) fail("EEXIST");
    if (node.kind === "directory") fail("EPERM");
    change(target.parent, { added: { name: target.name, node }, operation: {} });
  }

  unlink(path: FilePath): void {
    this.#begin("unlink", path);
    const fail: Fail = failing("unlink", path);
    const { parent, name, node } = this.#parentOf(path, fail);
    if (node === undefined) fail("ENOENT");
    if (node.kind === "directory") fail("EISDIR");
    change(parent, { removed: name, operation: {} });
  }

  mkdir(path: FilePath, mode: number): void {
    this.#begin("mkdir", path);
    const fail: Fail = failing("mkdir", path);
    const { parent, name, node } = this.#parentOf(path, fail);
    if (node !== undefined) fail("EEXIST");
    change(parent, { added: { name, node: createDirectory(mode) }, operation: {} });
  }

  fsyncDirectory(path: FilePath): void {
    this.#begin("fsync", path);
    const node = this.#directory(path, "open");
    node.synced = new Map(node.names);
    node.pending = [];
  }

  crash(random: Parameters<SimulatedDisk["crash"]>[0]): SimulatedDisk {
    return new MemoryDisk(afterPowerLoss(this.#root, random));
  }

  cutPowerAfter(calls: number): void {
    this.#callsLeft = calls;
  }

  restorePower(): void {
    this.#callsLeft = Number.POSITIVE_INFINITY;
    this.#open.clear();
  }

  readFile(path: FilePath): Buffer {
    const node = this.#find(path, "open");
    if (node.kind === "directory") throw createSystemError("EISDIR", { syscall: "read" });
    return Buffer.from(node.content);
  }

  list(path: FilePath): string[] {
    const { names } = this.#directory(path, "scandir");
    return [...names.keys()].map((name) => Buffer.from(name, "latin1").toString()).sort();
  }

  kindOf(path: FilePath): "file" | "directory" | undefined {
    try {
      return this.#find(path, "stat").kind;
    } catch {
      return undefined;
    }
  }

  modeOf(path: FilePath): number {
    return this.#find(path, "stat").mode;
  }

  #begin(syscall: string, path?: FilePath, dest?: FilePath): void {
    this.calls += 1;
    this.#callsLeft -= 1;
    if (this.#callsLeft < 0)
      throw createSystemError("EIO", { syscall, path: path?.toString(), dest: dest?.toString() });
  }

  #lookUp(key: string, fail: Fail): Node {
    let node: Node = this.#root;
    for (const name of key.split("/")) {
      if (name === "") continue;
      if (node.kind !== "directory") return fail("ENOTDIR");
      const next: Node | undefined = node.names.get(name);
      if (next === undefined) return fail("ENOENT");
      node = next;
    }
    return node;
  }

  #find(path: FilePath, syscall: string, dest?: FilePath): Node {
    return this.#lookUp(keyOf(path), failing(syscall, path, dest));
  }

  #directory(path: FilePath, syscall: string): DirectoryNode {
    const node = this.#find(path, syscall);
    return node.kind === "directory" ? node : failing(syscall, path)("ENOTDIR");
  }

  /** The directory that holds the last name of `path`, whether or not that name exists. */
  #parentOf(path: FilePath, fail: Fail) {
    const key = keyOf(path);
    const parent = this.#lookUp(posix.dirname(key), fail);
    if (parent.kind !== "directory") return fail("ENOTDIR");
    const name = posix.basename(key);
    return { parent, name, node: name === "" ? (this.#root as Node) : parent.names.get(name) };
  }

  #openFile(node: FileNode, append: boolean): number {
    const fd = this.#nextFd++;
    this.#open.set(fd, { node, append, position: 0 });
    return fd;
  }

  #opened(fd: number, syscall: string): OpenFile {
    const file = this.#open.get(fd);
    if (file === undefined) throw createSystemError("EBADF", { syscall });
    return file;
  }
}

/** One character per byte, so that names that are not UTF-8 stay distinct. */
function keyOf(path: FilePath): string {
  const bytes = typeof path === "string" ? Buffer.from(path) : path;
  return posix.resolve("/", bytes.toString("latin1"));
}

function failing(syscall: string, path: FilePath, dest?: FilePath): Fail {
  return (code) => {
    throw createSystemError(code, { syscall, path: path.toString(), dest: dest?.toString() });
  };
}
