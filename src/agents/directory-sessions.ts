// Finds the sessions of a working directory among transcripts in one directory. Pure but for the reader.
import { join } from "node:path";
import type { Place, SessionReader } from "./adapter.ts";
import { isUuid } from "./arguments.ts";

/** Enough for the first prompt, whose line names the working directory. */
const HEAD_BYTES = 64 * 1024;

/** Ids of the sessions created since then, newest last. `idOf`: the session that a file name stands for. */
export function sessionsInDirectory(
  place: Place,
  directory: string,
  sinceMs: number,
  reader: SessionReader,
  idOf: (name: string) => string | undefined,
): string[] {
  return reader
    .list(directory)
    .flatMap(({ name }) => {
      const id = idOf(name);
      const path = join(directory, name);
      const atMs = id === undefined ? undefined : reader.createdMs(path);
      return id === undefined || atMs === undefined || atMs < sinceMs ? [] : [{ id, atMs, path }];
    })
    .filter(({ path }) => {
      // Two working directories can share a name: /a.b and /a-b.
      const cwd = /"cwd":("(?:[^"\\]|\\.)*")/.exec(reader.head(path, HEAD_BYTES) ?? "")?.[1];
      return cwd === undefined || JSON.parse(cwd) === place.cwd;
    })
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ id }) => id);
}

/** The id in `UUID.jsonl`. */
export function uuidOfTranscript(name: string): string | undefined {
  const id = name.replace(/\.jsonl$/, "");
  return id !== name && isUuid(id) ? id : undefined;
}
