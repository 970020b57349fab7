// Locates modules that run on their own and files that ship with them: next to the caller when sources run directly, at
// the top of dist when they are bundled.
import { Worker, type WorkerOptions } from "node:worker_threads";

/** Starts the module `name` as a worker thread. `from` is the caller's import.meta.url. */
export function startWorker(name: string, from: string, options: WorkerOptions = {}): Worker {
  // Workers inherit --input-type from `node --input-type=module -e …` and refuse it for a file.
  const inherited = process.execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
  return new Worker(workerUrl(name, from), { stdout: false, stderr: false, ...inherited, ...options });
}

export function workerUrl(name: string, from: string): URL {
  return assetUrl(from.endsWith(".ts") ? `${name}.ts` : `${name}.js`, from);
}

/** A file that the build copies to dist. `from` is the caller's import.meta.url. */
export function assetUrl(file: string, from: string): URL {
  if (from.endsWith(".ts")) return new URL(`./${file}`, from);
  const dist = from.lastIndexOf("/dist/");
  return new URL(`${from.slice(0, dist)}/dist/${file}`);
}
