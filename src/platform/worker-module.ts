// Where a worker's code lies: beside its sources when they run directly, at the top of dist when they are bundled.
import { Worker, type WorkerOptions } from "node:worker_threads";

/** Starts `src/<room>/<name>.ts` as a worker. `from` is the caller's import.meta.url; the file lies beside it. */
export function startWorker(name: string, from: string, options: WorkerOptions = {}): Worker {
  return new Worker(workerUrl(name, from), { stdout: false, stderr: false, ...options });
}

export function workerUrl(name: string, from: string): URL {
  if (from.endsWith(".ts")) return new URL(`./${name}.ts`, from);
  const dist = from.lastIndexOf("/dist/");
  return new URL(`${from.slice(0, dist)}/dist/${name}.js`);
}
