// Makes many files at once: each worker inflates its own members and creates its own files with synchronous calls, one
// batch after the other. A few files are made right here. The first failure stops everything and is thrown.
import { unlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import { createWorkerPool } from "../../platform/worker-pool.ts";
import type { Flaw } from "../model/entry.ts";
import { systemPath } from "../model/path-bytes.ts";
import { createLayerReader, type FileReader, type LayerMembers } from "../vault/layer-reader.ts";
import { cutBatches, type FileOrder } from "./batches.ts";
import { type Capabilities, detectCapabilities, makeFile } from "./make-path.ts";

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
/** Little of what a worker allocates survives a batch: a small young generation saves 100 MB at no measurable cost. */
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
    const capabilities = detectCapabilities();
    return batches.flatMap((batch) => {
      const flaws = makeFiles(task, batch.orders, reader, capabilities);
      onDone(batch.orders.length, batch.bytes);
      return flaws;
    });
  }
  await using pool = createWorkerPool<readonly FileOrder[], Flaw[]>({
    module: "restore-worker",
    from: import.meta.url,
    workers: Math.min(availableParallelism(), batches.length),
    depth: DEPTH,
    youngGenerationMb: YOUNG_MB,
    workerData: { ...task, layers },
  });
  const flaws: Flaw[] = [];
  await pool.run(
    batches.map(({ orders }) => orders),
    (found, index) => {
      flaws.push(...found);
      onDone(batches[index]!.orders.length, batches[index]!.bytes);
    },
    signal,
  );
  return flaws;
}

/** One batch, synchronously. */
export function makeFiles(
  task: FilesTask,
  orders: readonly FileOrder[],
  reader: FileReader,
  capabilities: Capabilities,
): Flaw[] {
  const flaws: Flaw[] = [];
  for (const { path, entry } of orders) {
    const target = `${task.root}/${path}`;
    try {
      if (task.replace) removeEarlier(target);
      makeFile(target, entry, reader, capabilities, flaws);
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
