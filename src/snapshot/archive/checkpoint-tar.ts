// The files of a checkpoint as one tar stream: PAX headers, hard links, holes, xattrs. Export compresses it, and the import of a
// live point unpacks it, so that both read whole files whatever layers store. Streams: memory does not grow with the files.
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { LazarusError } from "../../platform/errors.ts";
import { type Entry, storedLength } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { BLOCK, encodeHeader, encodeSparseMap, padding } from "../tar/header.ts";
import type { Contents } from "../vault/contents.ts";

export interface TarOptions {
  /** Bytes of files so far, and in total. */
  onProgress(done: number, total: number): void;
  /** What is interrupted by the signal, for its error. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

const YIELD_ENTRIES = 256;

/** Passes the stream to `add`, up to the end of the archive. Returns the number of entries. */
export async function writeCheckpointTar(
  contents: Contents,
  add: (bytes: Uint8Array) => void,
  { onProgress, what, signal }: TarOptions,
): Promise<number> {
  const entries = [...contents.listing.values()].sort((a, b) => comparePaths(a.path, b.path));
  const total = entries.reduce((sum, { size }) => sum + size, 0);
  const leaders = new Map<string, string>();
  let done = 0;
  for (const [i, entry] of entries.entries()) {
    addEntry(add, contents, entry, leaders);
    done += entry.size;
    onProgress(done, total);
    if (i % YIELD_ENTRIES !== 0) continue;
    await yieldToEventLoop();
    if (signal?.aborted) throw new LazarusError("INTERRUPTED", `the ${what} was interrupted`);
  }
  add(Buffer.alloc(2 * BLOCK));
  return entries.length;
}

function addEntry(
  add: (bytes: Uint8Array) => void,
  contents: Contents,
  entry: Entry,
  leaders: Map<string, string>,
): void {
  const leader = entry.group === undefined ? undefined : leaders.get(entry.group);
  if (leader !== undefined) {
    add(encodeHeader(entry, { linkTo: leader, storedSize: 0, plainNames: true }));
    return;
  }
  if (entry.group !== undefined) leaders.set(entry.group, entry.path);
  const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
  const storedSize = map.length + storedLength(entry);
  add(encodeHeader(entry, { storedSize, plainNames: true }));
  add(map);
  if (entry.type === "file") contents.read(entry, add);
  add(Buffer.alloc(padding(storedSize)));
}
