// Compares the stat of every path in the stat cache, on several threads: two cores check 130,000 files in half the time
// that `find` takes. The walk uses only the verdict "unchanged" and checks every other path itself.
// Live protection replaces the stat cache.
import { lstatSync } from "node:fs";
import { availableParallelism } from "node:os";
import { startWorker } from "../../platform/worker-module.ts";
import { outsideWorktree, rootOf, type TreeRoot, WORKTREE } from "../model/cell-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import { nameAt } from "./name-table.ts";
import { findRow, isUnchanged, type StatCache } from "./stat-cache.ts";

export interface ProbeTask {
  readonly root: TreeRoot;
  /** The stat cache's file, whole. */
  readonly cache: SharedArrayBuffer;
  /** One byte per row. */
  readonly verdicts: SharedArrayBuffer;
  /** The next chunk to take, then the state of each chunk of rows: FREE, TAKEN or DONE. */
  readonly chunks: SharedArrayBuffer;
}

export const MUST_CHECK = 0;
export const UNCHANGED = 1;
/** Excluded from the check. */
const SKIPPED = 2;

const CHUNK_ROWS = 512;
const FREE = 0;
const TAKEN = 1;
const DONE = 2;
/** Starting a thread takes 40 ms, in which one thread checks this many paths. */
export const MIN_ROWS = 10_000;
const MAX_THREADS = 4;
const NO_THROW = { throwIfNoEntry: false } as const;
/** Holds all stat objects of a thread's share, so that no garbage collection is needed. */
const YOUNG_MB = 96;
/** After this, the main thread checks the rows of a thread that does not answer. */
const ANSWER_MS = 1000;

/** Threads that help with the check. */
export interface Probers extends Disposable {
  give(task: ProbeTask): void;
}

export function startProbers(): Probers {
  const workers = Array.from({ length: Math.min(availableParallelism(), MAX_THREADS) - 1 }, () => {
    const worker = startWorker("probe-worker", import.meta.url, {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    // Without it the main thread does all the work.
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
  /** Paths to leave out, with everything below them. */
  readonly skip?: Iterable<string> | undefined;
  /** Default: threads of its own for a large cache. */
  readonly probers?: Probers | undefined;
  /** Number of rows from which threads are started. */
  readonly minRows?: number;
}

/** A verdict per row: UNCHANGED, or MUST_CHECK. Undefined for a cache that was not read from a file. */
export function probeRows(
  root: TreeRoot,
  cache: StatCache,
  { skip = [], probers, minRows = MIN_ROWS }: ProbeOptions = {},
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
  for (const path of skip) markBelow(cache, findRow(cache, path), verdicts);
  using own = probers === undefined && cache.count >= minRows ? startProbers() : undefined;
  (probers ?? own)?.give(task);
  const probeChunk = checkChunks(task, cache);
  const states = new Int32Array(task.chunks, 4);
  for (let chunk = 0; chunk < count; chunk += 1) {
    if (Atomics.load(states, chunk) === TAKEN) Atomics.wait(states, chunk, TAKEN, ANSWER_MS);
    // A thread may also have stopped between taking a chunk and marking it.
    if (Atomics.load(states, chunk) !== DONE) probeChunk(chunk);
  }
  // A copy: a thread that was given up on may still write, and the walk reads a verdict more than once.
  return verdicts.slice();
}

/** Checks chunk after chunk until none is left; every thread does this. Returns the function that checks one chunk. */
export function checkChunks(task: ProbeTask, cache: StatCache): (chunk: number) => void {
  const next = new Int32Array(task.chunks, 0, 1);
  const states = new Int32Array(task.chunks, 4);
  const verdicts = new Uint8Array(task.verdicts);
  const pathOf = createPaths(task.root, cache);
  const probeChunk = (chunk: number) => {
    const end = Math.min(cache.count, (chunk + 1) * CHUNK_ROWS);
    for (let row = chunk * CHUNK_ROWS; row < end; row += 1) {
      if (verdicts[row] === SKIPPED || cache.racy[row] === 1) continue;
      if (isSame(cache, row, pathOf(row))) verdicts[row] = UNCHANGED;
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
    const stat = lstatSync(cache.spelling === "latin1" ? path : systemPath(path), NO_THROW);
    return stat !== undefined && isUnchanged(cache, row, stat);
  } catch {
    return false;
  }
}

/** The path of each row on disk. Only those of directories are kept. */
function createPaths(root: TreeRoot, cache: StatCache): (row: number) => string {
  const parents = new Uint32Array(cache.count);
  for (let row = 0; row < cache.count; row += 1) {
    const count = cache.childCount[row]!;
    if (count > 0) parents.fill(row, cache.firstChild[row]!, cache.firstChild[row]! + count);
  }
  const paths = new Map<number, string>([[0, rootOf(root)]]);
  const outside = outsideWorktree(root);
  if (outside !== undefined) paths.set(findRow(cache, WORKTREE), outside.path);
  const pathOf = (row: number): string => {
    const known = paths.get(row);
    if (known !== undefined) return known;
    const path = `${pathOf(parents[row]!)}/${nameAt(cache, row)}`;
    if (cache.childCount[row]! > 0) paths.set(row, path);
    return path;
  };
  return pathOf;
}

function markBelow(cache: StatCache, row: number, verdicts: Uint8Array): void {
  if (row < 0) return;
  verdicts[row] = SKIPPED;
  const first = cache.firstChild[row]!;
  for (let child = first; child < first + cache.childCount[row]!; child += 1)
    markBelow(cache, child, verdicts);
}
