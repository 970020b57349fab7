// Where a worker's code lies: beside its sources when they run directly, at the top of dist when they are bundled.
import { type MessagePort, Worker, type WorkerOptions } from "node:worker_threads";

/** Starts `src/<room>/<name>.ts` as a worker. `from` is the caller's import.meta.url; the file lies beside it. */
export function startWorker(name: string, from: string, options: WorkerOptions = {}): Worker {
  // `node --input-type=module -e …`: said of the program on the command line, and refused for one in a file.
  const own = process.execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
  return new Worker(workerUrl(name, from), { stdout: false, stderr: false, ...own, ...options });
}

const LEAVE = "lazarus: leave";

/**
 * Lets workers end by themselves after what they have in hand. Not `terminate`: when that meets a worker in the middle of
 * making a zlib stream, Node aborts the whole process.
 */
export async function dismissWorkers(workers: readonly Worker[]): Promise<void> {
  await Promise.all(
    workers.map((worker) => {
      if (worker.threadId < 0) return undefined;
      const gone = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
      worker.postMessage(LEAVE);
      return gone;
    }),
  );
}

/** For a worker: hears tasks until it is dismissed. */
export function hearTasks<T>(port: MessagePort, perform: (task: T) => void): void {
  port.on("message", (task: T | typeof LEAVE) => {
    if (task === LEAVE) port.close();
    else perform(task as T);
  });
}

export function workerUrl(name: string, from: string): URL {
  if (from.endsWith(".ts")) return new URL(`./${name}.ts`, from);
  const dist = from.lastIndexOf("/dist/");
  return new URL(`${from.slice(0, dist)}/dist/${name}.js`);
}
