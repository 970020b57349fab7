// Runs capture tasks and hands their results over in the order the tasks were given. A handful of tasks run right here;
// more are spread over worker threads, with a window that bounds how far the workers may run ahead of the writer, and
// so the memory.
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { type ErrorCode, LazarusError } from "../../platform/errors.ts";
import { dismissWorkers, startWorker } from "../../platform/worker-module.ts";
import type { CaptureTask, TaskMemory, TaskResult } from "../model/capture-item.ts";
import { type CapturedColumns, fromColumns } from "./captured-columns.ts";
import { runTask } from "./task.ts";

/** Starting workers costs about 30 ms: below this many bytes the main thread is done sooner alone. */
const INLINE_BYTES = 8 << 20;
/** What a worker has before it: enough to go on with while the main thread is busy elsewhere for 100 ms. */
const DEPTH = 6;
const WINDOW_PER_WORKER = 6;
const YOUNG_MB = 12;
/**
 * The window's memory is made once and used again and again: 1 MB buffers that come and go kept the garbage collector of
 * every thread busy, a quarter of all processor time. Only what is written to takes up memory; the rest is room for a
 * group that ends with a file of almost 4 MB.
 */
const RAW_BYTES = 8 << 20;
const STORED_BYTES = 6 << 20;

export interface PoolOptions {
  /** Total bytes to be read, to choose between here and workers. */
  readonly totalBytes: number;
  readonly signal?: AbortSignal | undefined;
}

type Take = (result: TaskResult, index: number) => void;

export interface Pool extends AsyncDisposable {
  /** Calls `take` with each result, in task order. After a failure the pool is of no more use. */
  run(tasks: readonly CaptureTask[], options: PoolOptions, take: Take): Promise<void>;
  /** For tasks that become known one after the other. One at a time, and no `run` beside it. */
  open(take: Take): Feed;
  /** Starts the threads now: there will be work for them. */
  warm(): void;
}

export interface Feed {
  add(task: CaptureTask): void;
  /** No more will come. Done when the last result was taken; fails with whatever went wrong since `open`. */
  end(): Promise<void>;
  /** Takes nothing any more. */
  stop(): void;
}

/** Below this there is no use for threads. */
export function isMuch(bytes: number): boolean {
  return bytes >= INLINE_BYTES;
}

/** Threads are started when they are first needed, or called for. */
export function createPool(): Pool {
  let crew: Crew | undefined;
  return {
    warm() {
      crew ??= startCrew();
    },
    open(take) {
      crew ??= startCrew();
      return openFeed(crew, take);
    },
    async run(tasks, options, take) {
      if (isMuch(options.totalBytes) && tasks.length >= 3) {
        crew ??= startCrew();
        const feed = openFeed(crew, take, options.signal);
        for (const task of tasks) feed.add(task);
        return feed.end();
      }
      for (const [index, task] of tasks.entries()) {
        options.signal?.throwIfAborted();
        take(runTask(task), index);
      }
    },
    async [Symbol.asyncDispose]() {
      const { workers } = crew ?? { workers: [] };
      crew = undefined;
      await dismissWorkers(workers);
    },
  };
}

/** One list of tasks with a pool of its own. */
export async function runTasks(
  tasks: readonly CaptureTask[],
  options: PoolOptions,
  take: Take,
): Promise<void> {
  await using pool = createPool();
  await pool.run(tasks, options, take);
}

interface Reply {
  readonly id: number;
  readonly result?: Omit<TaskResult, "captured">;
  readonly columns?: CapturedColumns;
  readonly error?: { readonly message: string; readonly hint: string | undefined; readonly code: ErrorCode };
}

/** Who listens to the workers now. */
interface Listener {
  onReply(worker: Worker, reply: Reply): void;
  onFailure(error: unknown): void;
}

interface Crew {
  readonly workers: readonly Worker[];
  readonly memories: readonly TaskMemory[];
  listener: Listener | undefined;
  /** What went wrong while nobody listened. */
  failure: { readonly error: unknown } | undefined;
}

function startCrew(): Crew {
  const workers = Array.from({ length: availableParallelism() }, () =>
    startWorker("capture-worker", import.meta.url, {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      // A worker closes what it opens: no list of open files, which costs a little for each of a hundred thousand.
      trackUnmanagedFds: false,
    }),
  );
  const memories = Array.from({ length: workers.length * WINDOW_PER_WORKER }, () => ({
    raw: new SharedArrayBuffer(RAW_BYTES),
    stored: new SharedArrayBuffer(STORED_BYTES),
  }));
  const crew: Crew = { workers, memories, listener: undefined, failure: undefined };
  const fail = (error: unknown) => {
    crew.failure ??= { error };
    crew.listener?.onFailure(error);
  };
  for (const worker of workers) {
    worker.on("message", (reply: Reply) => crew.listener?.onReply(worker, reply));
    worker.on("error", fail);
    worker.on("exit", (code) => fail(new Error(`a capture worker ended with code ${code}`)));
  }
  return crew;
}

function openFeed(crew: Crew, take: Take, signal?: AbortSignal): Feed {
  const { workers, memories } = crew;
  const window = memories.length;
  const tasks: CaptureTask[] = [];
  const waiting = new Map<number, TaskResult>();
  const load = new Map(workers.map((worker) => [worker, 0]));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Whoever calls `end` hears of it; a failure before that must not end the process.
  promise.catch(() => {});
  let given = 0;
  let taken = 0;
  let ended = false;
  const feed = () => {
    for (;;) {
      if (given >= tasks.length || given - taken >= window) return;
      // The least loaded worker, and not too deep: at the end nobody should have much left when the others have nothing.
      const [worker, depth] = [...load].reduce((least, next) => (next[1] < least[1] ? next : least));
      if (depth >= DEPTH) return;
      load.set(worker, depth + 1);
      // No more than `window` tasks are under way, so the memory of this one was read out.
      worker.postMessage({ id: given, task: { ...tasks[given], memory: memories[given % window] } });
      given += 1;
    }
  };
  const onReply = (worker: Worker, { id, result, columns, error }: Reply) => {
    if (error !== undefined) throw new LazarusError(error.code, error.message, error);
    if (result === undefined || columns === undefined) throw new Error("a capture worker sent nothing");
    load.set(worker, load.get(worker)! - 1);
    const task = tasks[id]!;
    const asked = task.kind === "piece" ? [] : task.items;
    waiting.set(id, { ...result, captured: fromColumns(columns, asked) });
    // The worker goes on before the writer takes what is there.
    feed();
    for (let next = waiting.get(taken); next !== undefined; next = waiting.get(taken)) {
      waiting.delete(taken);
      take(next, taken);
      taken += 1;
    }
    feed();
  };
  const stop = () => {
    if (crew.listener === listener) crew.listener = undefined;
  };
  const fail = (error: unknown) => {
    stop();
    reject(error);
  };
  const listener: Listener = {
    onReply(worker, reply) {
      try {
        onReply(worker, reply);
        if (ended && taken === tasks.length) resolve();
      } catch (failure) {
        fail(failure);
      }
    },
    onFailure: fail,
  };
  crew.listener = listener;
  if (crew.failure !== undefined) fail(crew.failure.error);
  signal?.addEventListener("abort", () => fail(signal.reason), { once: true });
  return {
    add(task) {
      tasks.push(task);
      if (crew.listener === listener) feed();
    },
    end() {
      ended = true;
      if (taken === tasks.length) resolve();
      return promise.finally(stop);
    },
    stop,
  };
}
