// Makes many files at once: each worker inflates its own members and creates its own files with synchronous calls, one
// batch after the other. A few files are made right here. The first failure stops everything and is thrown.
import { unlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { asLazarusError, type ErrorCode, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { dismissWorkers, startWorker } from "../../platform/worker-module.ts";
import type { Flaw } from "../model/entry.ts";
import { systemPath } from "../model/path-bytes.ts";
import { createLayerReader, type FileReader, type LayerMembers } from "../vault/layer-reader.ts";
import { type Batch, cutBatches, encodeOrders, type FileOrder } from "./batches.ts";
import { findMeans, type Means, makeFile } from "./make-path.ts";

export interface FilesTask {
  /** Directory below which the orders' paths lie. */
  readonly root: string;
  /** A file that is there already was left by an earlier attempt: it is made anew. */
  readonly replace: boolean;
}

/** Starting workers costs about 40 ms: below this the main thread is done sooner alone. */
const INLINE_BYTES = 8 << 20;
const INLINE_FILES = 500;
const DEPTH = 2;
/** Little of what a worker makes survives a batch: a small nursery saves 100 MB and costs nothing that shows. */
const YOUNG_MB = 8;

export async function makeAllFiles(
  task: FilesTask,
  orders: readonly FileOrder[],
  layers: readonly LayerMembers[],
  onDone: (files: number, bytes: number) => void,
  signal?: AbortSignal,
): Promise<Flaw[]> {
  const batches = cutBatches(orders, layers);
  const bytes = batches.reduce((sum, batch) => sum + batch.bytes, 0);
  if (batches.length < 2 || (bytes < INLINE_BYTES && orders.length < INLINE_FILES)) {
    using reader = createLayerReader(layers);
    const means = findMeans();
    return batches.flatMap((batch) => {
      const flaws = makeFiles(task, batch.orders, reader, means);
      onDone(batch.orders.length, batch.bytes);
      return flaws;
    });
  }
  const count = Math.min(availableParallelism(), batches.length);
  const workers = Array.from({ length: count }, () =>
    startWorker("restore-worker", import.meta.url, {
      workerData: { ...task, layers },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    }),
  );
  try {
    return await drive(workers, batches, layers, onDone, signal);
  } finally {
    await dismissWorkers(workers);
  }
}

/** One batch, synchronously. */
export function makeFiles(
  task: FilesTask,
  orders: readonly FileOrder[],
  reader: FileReader,
  means: Means,
): Flaw[] {
  const flaws: Flaw[] = [];
  for (const { path, entry } of orders) {
    const target = `${task.root}/${path}`;
    try {
      if (task.replace) removeEarlier(target);
      makeFile(target, entry, reader, means, flaws);
    } catch (error) {
      throw asLazarusError(error, `writing ${JSON.stringify(target)}`, task.root);
    }
  }
  return flaws;
}

function removeEarlier(path: string): void {
  try {
    unlinkSync(systemPath(path));
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
}

/** What a worker says about a batch: errors as plain data, since classes do not cross threads. */
type Report =
  | { readonly flaws: readonly Flaw[] }
  | {
      readonly code: ErrorCode;
      readonly message: string;
      readonly hint: string | undefined;
      readonly details: Readonly<Record<string, unknown>>;
      readonly cause: string | undefined;
    };

export function toReport(work: () => Flaw[]): Report {
  try {
    return { flaws: work() };
  } catch (error) {
    const { code, message, hint, details, cause } = asLazarusError(error, "restoring files");
    return { code, message, hint, details, cause: cause instanceof Error ? cause.message : undefined };
  }
}

function fromReport(report: Report): readonly Flaw[] {
  if ("flaws" in report) return report.flaws;
  const { code, message, hint, details, cause } = report;
  throw new LazarusError(code, message, { hint, details, ...(cause && { cause: new Error(cause) }) });
}

function drive(
  workers: readonly Worker[],
  batches: readonly Batch[],
  layers: readonly LayerMembers[],
  onDone: (files: number, bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<Flaw[]> {
  return new Promise((resolve, reject) => {
    const flaws: Flaw[] = [];
    let given = 0;
    let done = 0;
    const feed = (worker: Worker, queue: Batch[]) => {
      while (queue.length < DEPTH && given < batches.length) {
        const batch = batches[given++]!;
        queue.push(batch);
        worker.postMessage(encodeOrders(batch.orders, layers));
      }
    };
    for (const worker of workers) {
      const queue: Batch[] = [];
      worker.on("message", (report: Report) => {
        try {
          flaws.push(...fromReport(report));
          const batch = queue.shift()!;
          done += 1;
          feed(worker, queue);
          onDone(batch.orders.length, batch.bytes);
          if (done === batches.length) resolve(flaws);
        } catch (error) {
          reject(error);
        }
      });
      worker.on("error", reject);
      worker.on("exit", (code) => reject(new Error(`a restore worker ended with code ${code}`)));
      feed(worker, queue);
    }
    const interrupt = () => reject(new LazarusError("INTERRUPTED", "interrupted by a signal"));
    if (signal?.aborted) interrupt();
    signal?.addEventListener("abort", interrupt, { once: true });
  });
}
