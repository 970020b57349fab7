// The tree of a simulated disk: current content of files and directories, what is synced, and what is pending.

export interface PendingWrite {
  readonly offset: number;
  readonly data: Buffer;
}

export interface FileNode {
  readonly kind: "file";
  readonly mode: number;
  content: Buffer;
  synced: Buffer;
  pending: PendingWrite[];
}

/** The names that one operation removes from and adds to a directory, atomically. */
export interface NameChange {
  readonly removed?: string;
  readonly added?: { readonly name: string; readonly node: Node };
  /** Shared by the two halves of a rename across directories. */
  readonly operation: object;
}

export interface DirectoryNode {
  readonly kind: "directory";
  readonly mode: number;
  readonly names: Map<string, Node>;
  synced: Map<string, Node>;
  pending: NameChange[];
}

export type Node = FileNode | DirectoryNode;

export function createFile(mode: number): FileNode {
  return { kind: "file", mode, content: Buffer.alloc(0), synced: Buffer.alloc(0), pending: [] };
}

export function createDirectory(mode: number): DirectoryNode {
  return { kind: "directory", mode, names: new Map(), synced: new Map(), pending: [] };
}

export function change(directory: DirectoryNode, { removed, added, operation }: NameChange): void {
  const entry: NameChange = {
    ...(removed === undefined ? {} : { removed }),
    ...(added === undefined ? {} : { added }),
    operation,
  };
  applyChange(directory.names, entry);
  directory.pending.push(entry);
}

export function applyChange(names: Map<string, Node>, { removed, added }: NameChange): void {
  if (removed !== undefined) names.delete(removed);
  if (added !== undefined) names.set(added.name, added.node);
}

/** A write past the end fills the gap with zeros, as in a sparse file. */
export function applyWrite(content: Buffer, { offset, data }: PendingWrite): Buffer {
  const result = Buffer.alloc(Math.max(content.length, offset + data.length));
  content.copy(result);
  data.copy(result, offset);
  return result;
}
