// What an adapter may read, from the real disk: for tests.
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import type { SessionReader } from "../../src/agents/adapter.ts";

/** Refuses everything outside `root`. */
export function readerOf(root: string): SessionReader {
  const check = (path: string) => {
    if (!path.startsWith(`${root}/`)) throw new Error(`outside ${root}: ${path}`);
  };
  return {
    list(directory) {
      check(directory);
      try {
        return readdirSync(directory, { withFileTypes: true }).map((entry) => ({
          name: entry.name,
          isDirectory: entry.isDirectory(),
        }));
      } catch {
        return [];
      }
    },
    head(path, bytes) {
      check(path);
      try {
        const fd = openSync(path, "r");
        const buffer = Buffer.alloc(bytes);
        const read = readSync(fd, buffer, 0, bytes, 0);
        closeSync(fd);
        return buffer.toString("utf8", 0, read);
      } catch {
        return undefined;
      }
    },
    createdMs(path) {
      check(path);
      const stat = statSync(path, { throwIfNoEntry: false });
      return stat && (stat.birthtimeMs || stat.mtimeMs);
    },
  };
}
