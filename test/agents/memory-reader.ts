// Files in memory for adapters: what `list`, `head` and `createdMs` return follows from a table of paths.
import type { SessionReader } from "../../src/agents/adapter.ts";

export interface MemoryFile {
  readonly text?: string;
  readonly createdMs?: number;
}

export function memoryReader(files: Readonly<Record<string, MemoryFile>>): SessionReader {
  return {
    list(directory) {
      const below = Object.keys(files).filter((path) => path.startsWith(`${directory}/`));
      const names = new Map(
        below.map((path) => {
          const [name = "", ...rest] = path.slice(directory.length + 1).split("/");
          return [name, rest.length > 0];
        }),
      );
      return [...names].map(([name, isDirectory]) => ({ name, isDirectory }));
    },
    head: (path, bytes) => files[path]?.text?.slice(0, bytes),
    createdMs: (path) => files[path] && (files[path].createdMs ?? 0),
  };
}
