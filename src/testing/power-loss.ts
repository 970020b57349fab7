// Computes what a power loss leaves of a simulated disk (INV-1). Pure except for the random source it is given.
import {
  applyChange,
  applyWrite,
  createDirectory,
  createFile,
  type DirectoryNode,
  type FileNode,
  type Node,
  type PendingWrite,
} from "./disk-tree.ts";
import type { Random } from "./seeded-ids.ts";

/**
 * A tree as it may look after a power loss. Each change without an fsync survives or not by `random`, independently: later
 * changes can survive when earlier ones do not, since POSIX guarantees no order. A rename within one directory is
 * atomic; one across two directories is all or nothing as long as neither directory has been synced since.
 */
export function afterPowerLoss(root: DirectoryNode, random: Random): DirectoryNode {
  const kept = new Map<object, boolean>();
  const done = new Map<Node, Node>();
  const isKept = (operation: object): boolean => {
    const decided = kept.get(operation) ?? random.chance(0.5);
    kept.set(operation, decided);
    return decided;
  };

  const surviveFile = (file: FileNode): FileNode => {
    let content = file.synced;
    for (const write of file.pending) content = surviveWrite(content, write, random);
    return { ...createFile(file.mode), content, synced: content };
  };
  const surviveDirectory = (directory: DirectoryNode): DirectoryNode => {
    const names = new Map(directory.synced);
    for (const entry of directory.pending) if (isKept(entry.operation)) applyChange(names, entry);
    const survived = new Map<string, Node>();
    for (const [name, node] of names) survived.set(name, survive(node));
    return { ...createDirectory(directory.mode), names: survived, synced: new Map(survived) };
  };
  const survive = (node: Node): Node => {
    // A hard-linked file stays one file.
    const before = done.get(node);
    if (before !== undefined) return before;
    const after = node.kind === "file" ? surviveFile(node) : surviveDirectory(node);
    done.set(node, after);
    return after;
  };
  return survive(root) as DirectoryNode;
}

function surviveWrite(content: Buffer, write: PendingWrite, random: Random): Buffer {
  const { offset, data } = write;
  switch (random.pick(["kept", "dropped", "cut", "garbled", "zeroed"] as const)) {
    case "kept":
      return applyWrite(content, write);
    case "dropped":
      return content;
    case "cut":
      return data.length === 0
        ? content
        : applyWrite(content, { offset, data: data.subarray(0, random.int(0, data.length - 1)) });
    case "garbled":
      return applyWrite(content, { offset, data: Buffer.from(random.bytes(data.length)) });
    // The new length reached the disk, but the blocks did not, as on ext4 and XFS.
    case "zeroed":
      return applyWrite(content, { offset, data: Buffer.alloc(data.length) });
  }
}
