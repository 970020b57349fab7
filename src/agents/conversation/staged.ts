// The copy of a conversation in a cell, a restored tree or a checkpoint: which files it has, and their bytes. The copy is
// untrusted: an agent can write to it, and an import brings it along.
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionFile } from "../adapter.ts";
import { CONVERSATION_DIRECTORY } from "../session.ts";
import { chainParts, fileOfParts, type Part, parsePartName, partName, partsDirectory } from "./parts.ts";

/** The files below `conversation/`, by path. */
export interface StagedTree {
  list(): readonly { readonly path: string; readonly size: number }[];
  read(path: string): Buffer;
}

export interface StagedFile {
  readonly name: string;
  readonly kind: "lines" | "whole" | "sqlite";
  readonly size: number;
  read(): Buffer;
}

const DATABASE = ".database";

/** Where a file is kept below `conversation/<adapter>/`. A database goes to a local-only layer: it cannot be redacted. */
export function stagedPath(name: string, kind: SessionFile["kind"]): string {
  if (kind === "lines") return partsDirectory(name);
  return kind === "sqlite" ? name + DATABASE : name;
}

/** Whether a name can be stored: relative, without `..`, and not one that Lazarus uses. */
export function isStageable(name: string): boolean {
  const isPlain = (part: string) =>
    part !== "" && part !== "." && part !== ".." && !part.startsWith(".lazarus-");
  const parts = name.split("/");
  return (
    name.length <= 1000 &&
    !name.includes("\0") &&
    parts.every(isPlain) &&
    parts.every((part) => fileOfParts(part) === undefined && !part.endsWith(DATABASE))
  );
}

/** Sorted by name. */
export function listStaged(tree: StagedTree, adapter: string): StagedFile[] {
  const files: StagedFile[] = [];
  const parts = new Map<string, Part[]>();
  for (const { path, size } of tree.list()) {
    if (!path.startsWith(`${adapter}/`)) continue;
    const slash = path.lastIndexOf("/");
    const directory = path.slice(0, slash);
    const part = parsePartName(path.slice(slash + 1));
    if (fileOfParts(directory) !== undefined) {
      if (part !== undefined) parts.set(directory, [...(parts.get(directory) ?? []), { ...part, size }]);
    } else {
      const kind = path.endsWith(DATABASE) ? "sqlite" : "whole";
      const name = path.slice(adapter.length + 1, kind === "sqlite" ? -DATABASE.length : undefined);
      files.push({ name, kind, size, read: () => tree.read(path) });
    }
  }
  for (const [directory, all] of parts) {
    const chain = chainParts(all);
    const read = () => Buffer.concat(chain.parts.map((part) => tree.read(`${directory}/${partName(part)}`)));
    const name = fileOfParts(directory)!.slice(adapter.length + 1);
    if (chain.size > 0) files.push({ name, kind: "lines", size: chain.size, read });
  }
  return files.filter(({ name }) => isStageable(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether a cell has copies at all; an agent whose files are in the cell has none. */
export function hasStagedFiles(cellRoot: string): boolean {
  return openStagedTree(cellRoot)
    .list()
    .some(({ path }) => path.includes("/"));
}

/** Follows no link. */
export function openStagedTree(cellRoot: string): StagedTree {
  const root = join(cellRoot, CONVERSATION_DIRECTORY);
  return {
    list() {
      const found: { path: string; size: number }[] = [];
      const walk = (directory: string) => {
        for (const entry of readDirectory(join(root, directory))) {
          const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
          if (entry.isDirectory()) walk(path);
          else if (entry.isFile()) found.push({ path, size: lstatSync(join(root, path)).size });
        }
      };
      if (lstatSync(root, { throwIfNoEntry: false })?.isDirectory()) walk("");
      return found;
    },
    read(path) {
      const fd = openSync(join(root, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        return fstatSync(fd).isFile() ? readFileSync(fd) : Buffer.alloc(0);
      } finally {
        closeSync(fd);
      }
    },
  };
}

function readDirectory(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}
