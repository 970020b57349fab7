// Asks of every path that the stat cache knows whether its stat is still the same, on several threads at once: two cores
// look at 130,000 files in the time that one walk of `find` takes for half of them. It reads nothing but stat, and its
// "unchanged" is all that the walk takes from it; everything else the walk looks at itself.
import { lstatSync } from "node:fs";
import { availableParallelism } from "node:os";
import { startWorker } from "../../platform/worker-module.ts";
import { joinPath, systemPath } from "../model/path-bytes.ts";
import { nameAt } from "./name-table.ts";
import { findRow, isUnchanged, type StatCache } from "./stat-cache.ts";

export interface ProbeTask {
  readonly root: string;
  /** The stat cache's file, whole. */
  readonly cache: SharedArrayBuffer;
  /** One byte a row. */
  readonly verdicts: SharedArrayBuffer;
  /** One number a chunk of rows: FREE, TAKEN, DONE; and before them, the next chunk to take. */
  readonly chunks: SharedArrayBuffer;
}

export const LOOK = 0;
export const UNCHANGED = 1;
/** Not looked at now. */
const PUT_OFF = 2;

const CHUNK_ROWS = 512;
const FREE = 0;
const TAKEN = 1;
const DONE = 2;
/** Starting a thread takes 40 ms, in which one thread looks at this many paths. */
export const LEAST_ROWS = 10_000;
const MOST_THREADS = 4;
const QUIETLY = { throwIfNoEntry: false } as const;
/** Room for the stats of a whole share, none of which survives: not one collection of garbage. */
const YOUNG_MB = 96;
/** A thread that does not come back is not waited for: the first one looks at its rows, too. */
const PATIENCE_MS = 1000;

/** Threads that look along. A thread takes 40 ms to start, so it is called before there is work for it. */
export interface Probers extends Disposable {
  give(task: ProbeTask): void;
}

export function startProbers(): Probers {
  const workers = Array.from({ length: Math.min(availableParallelism(), MOST_THREADS) - 1 }, () => {
    const worker = startWorker("probe-worker", import.meta.url, {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    // Without it the first thread does all the work.
    worker.on("error", () => {});
    worker.unref();
    return worker;
  });
  return {
    give(task) {
      for (const worker of workers) worker.postMessage(task);
    },
    [Symbol.dispose]() {
      for (const worker of workers) void worker.terminate();
    },
  };
}

export interface ProbeOptions {
  readonly putOff?: Iterable<string> | undefined;
  readonly probers?: Probers | undefined;
  /** From how many rows on threads are called that are not there yet. */
  readonly leastRows?: number;
}

/** A verdict for each row: UNCHANGED, or LOOK for what the walk has to see for itself. Undefined: nothing is known. */
export function probeRows(
  root: string,
  cache: StatCache,
  { putOff = [], probers, leastRows = LEAST_ROWS }: ProbeOptions = {},
): Uint8Array | undefined {
  if (cache.shared === undefined) return undefined;
  const count = Math.ceil(cache.count / CHUNK_ROWS);
  const task: ProbeTask = {
    root,
    cache: cache.shared,
    verdicts: new SharedArrayBuffer(cache.count),
    chunks: new SharedArrayBuffer(4 * (count + 1)),
  };
  const verdicts = new Uint8Array(task.verdicts);
  for (const path of putOff) markBelow(cache, findRow(cache, path), verdicts);
  using own = probers === undefined && cache.count >= leastRows ? startProbers() : undefined;
  (probers ?? own)?.give(task);
  const probeChunk = workThrough(task, cache);
  const states = new Int32Array(task.chunks, 4);
  for (let chunk = 0; chunk < count; chunk += 1) {
    if (Atomics.load(states, chunk) === TAKEN) Atomics.wait(states, chunk, TAKEN, PATIENCE_MS);
    // A thread may also have been held up between taking a chunk and saying so.
    if (Atomics.load(states, chunk) !== DONE) probeChunk(chunk);
  }
  // One that was not waited for may go on writing, and the walk asks of a row more than once.
  return verdicts.slice();
}

/** Takes chunk after chunk until none is left. Every thread does this. Returns what looks at one chunk. */
export function workThrough(task: ProbeTask, cache: StatCache): (chunk: number) => void {
  const next = new Int32Array(task.chunks, 0, 1);
  const states = new Int32Array(task.chunks, 4);
  const verdicts = new Uint8Array(task.verdicts);
  const directories = createDirectories(cache);
  const probeChunk = (chunk: number) => {
    const end = Math.min(cache.count, (chunk + 1) * CHUNK_ROWS);
    for (let row = chunk * CHUNK_ROWS; row < end; row += 1) {
      if (verdicts[row] === PUT_OFF || cache.racy[row] === 1) continue;
      if (
        isSame(
          cache,
          row,
          `${task.root}/${joinPath(directories.pathOf(directories.parents[row]!), nameAt(cache, row))}`,
        )
      )
        verdicts[row] = UNCHANGED;
    }
  };
  for (;;) {
    const chunk = Atomics.add(next, 0, 1);
    if (chunk >= states.length) return probeChunk;
    Atomics.compareExchange(states, chunk, FREE, TAKEN);
    probeChunk(chunk);
    Atomics.store(states, chunk, DONE);
    Atomics.notify(states, chunk);
  }
}

function isSame(cache: StatCache, row: number, path: string): boolean {
  try {
    const stat = lstatSync(cache.spelling === "latin1" ? path : systemPath(path), QUIETLY);
    return stat !== undefined && isUnchanged(cache, row, stat);
  } catch {
    return false;
  }
}

function createDirectories(cache: StatCache): { parents: Uint32Array; pathOf(row: number): string } {
  const parents = new Uint32Array(cache.count);
  for (let row = 0; row < cache.count; row += 1) {
    const count = cache.childCount[row]!;
    if (count > 0) parents.fill(row, cache.firstChild[row]!, cache.firstChild[row]! + count);
  }
  const paths = new Map<number, string>([[0, "."]]);
  const pathOf = (row: number): string => {
    const known = paths.get(row);
    if (known !== undefined) return known;
    const path = joinPath(pathOf(parents[row]!), nameAt(cache, row));
    paths.set(row, path);
    return path;
  };
  return { parents, pathOf };
}

function markBelow(cache: StatCache, row: number, verdicts: Uint8Array): void {
  if (row < 0) return;
  verdicts[row] = PUT_OFF;
  const first = cache.firstChild[row]!;
  for (let child = first; child < first + cache.childCount[row]!; child += 1)
    markBelow(cache, child, verdicts);
}
