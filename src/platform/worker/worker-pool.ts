// Runs tasks on worker threads and delivers the results in task order. The number of tasks in flight is bounded, and with it
// the memory held by results that wait for their turn. The first failure ends the run.
import { availableParallelism } from "node:os";
import { parentPort, type Worker, type WorkerOptions } from "node:worker_threads";
import { LazarusError } from "../errors.ts";
import { startWorker } from "../worker-module.ts";
import { fromSentError, type SentError, toSentError } from "./sent-error.ts";

export interface WorkerPoolOptions extends Pick<WorkerOptions, "workerData"> {
  /** File name of the worker's module, without extension. */
  readonly module: string;
  /** The caller's import.meta.url. */
  readonly from: string;
  /** Default: one per core. */
  readonly workers?: number;
  /** How many tasks a worker has queued or in progress. */
  readonly depth: number;
  /** A worker keeps little of what it allocates: a small young generation saves memory and costs no time. */
  readonly youngGenerationMb: number;
  /**
   * Size of the shared memory that each task may return its result in. It is reused as soon as the result was taken:
   * buffers that are moved between threads instead make the garbage collector of the main thread run all the time.
   */
  readonly sharedBytes?: number;
}

/** Disposing of a pool stops its workers and frees their memory; a later run starts new ones. */
export interface WorkerPool<Task, Result> extends AsyncDisposable {
  /** Starts the workers before there is a task for them. */
  start(): void;
  /**
   * Calls `take` with each result, in task order. Each task is taken from the iterator when a worker has a place for it, so that
   * the caller can prepare one while earlier ones run. One run at a time; after a failure the pool is unusable.
   */
  run(
    tasks: Iterable<Task>,
    take: (result: Result, index: number) => void,
    signal?: AbortSignal,
  ): Promise<void>;
}

/** Results that may wait for an earlier one, per worker. */
const AHEAD_PER_WORKER = 6;

/** The workers start with the first run, unless they were started before. */
export function createWorkerPool<Task, Result>(options: WorkerPoolOptions): WorkerPool<Task, Result> {
  let workers: readonly Worker[] = [];
  let memory: readonly SharedArrayBuffer[] = [];
  const start = () => {
    if (workers.length > 0) return;
    workers = startWorkers(options);
    memory = Array.from(
      { length: options.sharedBytes === undefined ? 0 : workers.length * AHEAD_PER_WORKER },
      () => new SharedArrayBuffer(options.sharedBytes!),
    );
  };
  return {
    start,
    async run(tasks, take, signal) {
      start();
      await runOn({ ...options, workers, memory }, tasks, take, signal);
    },
    async [Symbol.asyncDispose]() {
      const started = workers;
      workers = [];
      memory = [];
      await stopWorkers(started);
    },
  };
}

function startWorkers(options: WorkerPoolOptions): Worker[] {
  const { module, from, workers = availableParallelism(), youngGenerationMb, ...rest } = options;
  return Array.from({ length: workers }, () => {
    const worker = startWorker(module, from, {
      workerData: rest.workerData,
      // A worker closes what it opens. Tracking costs time for each file, and warns of every descriptor that a native call opened.
      trackUnmanagedFds: false,
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
    });
    // Between runs nothing else listens, and an unhandled error event would end the process.
    worker.on("error", () => {});
    return worker;
  });
}

interface Reply<Result> {
  readonly index: number;
  readonly result?: Result;
  readonly failure?: SentError;
}

interface Started extends Pick<WorkerPoolOptions, "module" | "depth"> {
  readonly workers: readonly Worker[];
  /** Empty, or one for each result that may be in progress or waiting. */
  readonly memory: readonly SharedArrayBuffer[];
}

async function runOn<Task, Result>(
  { module, depth, workers, memory }: Started,
  tasks: Iterable<Task>,
  take: (result: Result, index: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const queued = new Map(workers.map((worker) => [worker, 0]));
  const waiting = new Map<number, Result>();
  const iterator = tasks[Symbol.iterator]();
  let next = iterator.next();
  let sent = 0;
  let taken = 0;
  const feed = () => {
    while (!next.done && sent - taken < workers.length * AHEAD_PER_WORKER) {
      const [worker, count] = [...queued].reduce((least, each) => (each[1] < least[1] ? each : least));
      if (count >= depth) return;
      queued.set(worker, count + 1);
      worker.postMessage({ index: sent, task: next.value, memory: memory[sent % memory.length] });
      sent += 1;
      next = iterator.next();
    }
  };
  const onReply = (worker: Worker, { index, result, failure }: Reply<Result>) => {
    if (failure !== undefined) throw fromSentError(failure);
    queued.set(worker, queued.get(worker)! - 1);
    waiting.set(index, result!);
    // The worker gets its next task before the results are taken, which may be slow.
    feed();
    for (; waiting.has(taken); taken += 1) {
      const ready = waiting.get(taken)!;
      waiting.delete(taken);
      take(ready, taken);
    }
    feed();
    if (next.done && taken === sent) resolve();
  };
  const cleanups: (() => void)[] = [];
  const listen = <T>(worker: Worker, event: string, listener: (value: T) => void) => {
    worker.on(event, listener);
    cleanups.push(() => worker.off(event, listener));
  };
  for (const worker of workers) {
    listen(worker, "message", (reply: Reply<Result>) => {
      try {
        onReply(worker, reply);
      } catch (error) {
        reject(error);
      }
    });
    listen(worker, "error", reject);
    listen(worker, "exit", (code: number) => reject(new Error(`${module} exited with code ${code}`)));
  }
  const interrupt = () => reject(new LazarusError("INTERRUPTED", "interrupted by a signal"));
  signal?.addEventListener("abort", interrupt, { once: true });
  cleanups.push(() => signal?.removeEventListener("abort", interrupt));
  try {
    if (signal?.aborted) interrupt();
    else if (workers.some(({ threadId }) => threadId < 0)) reject(new Error(`${module} exited between runs`));
    else if (next.done) resolve();
    else feed();
    await promise;
  } finally {
    for (const cleanup of cleanups) cleanup();
  }
}

const STOP = "lazarus: stop";

/**
 * Lets workers finish their queued tasks and exit. Not `terminate`: if that hits a worker that is creating a zlib stream,
 * Node aborts the whole process.
 */
export async function stopWorkers(workers: readonly Worker[]): Promise<void> {
  await Promise.all(
    workers.map((worker) => {
      if (worker.threadId < 0) return undefined;
      const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
      worker.postMessage(STOP);
      return exited;
    }),
  );
}

/** What a task returns in a worker: its result, and the buffers to move instead of copying them. */
export interface TaskReply<Result> {
  readonly result: Result;
  readonly transfer?: ArrayBuffer[];
}

/** For a worker's module: performs tasks until the pool stops it. `doing` describes the work in an unexpected error. */
export function serveTasks<Task, Result>(
  doing: string,
  perform: (task: Task, memory: SharedArrayBuffer | undefined) => TaskReply<Result>,
): void {
  const port = parentPort!;
  port.on("message", (message: { index: number; task: Task; memory?: SharedArrayBuffer } | typeof STOP) => {
    if (message === STOP) {
      port.close();
      return;
    }
    const { index, task, memory } = message;
    try {
      const { result, transfer = [] } = perform(task, memory);
      port.postMessage({ index, result } satisfies Reply<Result>, transfer);
    } catch (error) {
      port.postMessage({ index, failure: toSentError(error, doing) } satisfies Reply<Result>);
    }
  });
}
