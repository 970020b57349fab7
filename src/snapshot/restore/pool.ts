// Creates many files on worker threads: each worker inflates its members and writes its files with synchronous calls, one
// batch at a time. A few files are created on the main thread. The first failure ends the run.
import { unlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import { createWorkerPool } from "../../platform/worker/worker-pool.ts";
import type { Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import { createLayerReader, type FileReader, type LayerMembers } from "../vault/layer-reader.ts";
import { cutBatches, type FileToMake } from "./batches.ts";
import { type Capabilities, detectCapabilities, makeFile } from "./make-path.ts";

export interface FilesTask {
  /** The paths of the files are relative to this directory. */
  readonly root: string;
  /** Replace files that an earlier attempt left. */
  readonly replace: boolean;
}

/** Callbacks on the main thread. */
export interface BatchEvents {
  /** Before any worker gets the batch: makes what its files need. Files of earlier batches may be under way. */
  readonly onNext?: (files: readonly FileToMake[]) => void;
  readonly onDone: (bytes: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Starting workers takes about 40 ms: below this the main thread alone is faster. */
const INLINE_BYTES = 8 << 20;
const INLINE_FILES = 500;
const DEPTH = 2;
/** Little of what a worker allocates survives a batch: a small young generation saves 100 MB at no measurable cost. */
const YOUNG_MB = 8;

export async function makeAllFiles(
  task: FilesTask,
  files: readonly FileToMake[],
  layers: readonly LayerMembers[],
  { onNext, onDone, signal }: BatchEvents,
): Promise<Flaw[]> {
  const batches = cutBatches(files, layers);
  const bytes = batches.reduce((sum, batch) => sum + batch.bytes, 0);
  if (batches.length < 2 || (bytes < INLINE_BYTES && files.length < INLINE_FILES)) {
    using reader = createLayerReader(layers);
    const capabilities = detectCapabilities();
    return batches.flatMap((batch) => {
      onNext?.(batch.files);
      const flaws = makeFiles(task, batch.files, reader, capabilities);
      onDone(batch.bytes);
      return flaws;
    });
  }
  await using pool = createWorkerPool<readonly FileToMake[], Flaw[]>({
    module: "restore-worker",
    from: import.meta.url,
    workers: Math.min(availableParallelism(), batches.length),
    depth: DEPTH,
    youngGenerationMb: YOUNG_MB,
    workerData: { ...task, layers },
  });
  const flaws: Flaw[] = [];
  await pool.run(
    Iterator.from(batches).map(({ files }) => {
      onNext?.(files);
      return files;
    }),
    (found, index) => {
      flaws.push(...found);
      onDone(batches[index]!.bytes);
    },
    signal,
  );
  return flaws;
}

/** Creates one batch of files. */
export function makeFiles(
  task: FilesTask,
  files: readonly FileToMake[],
  reader: FileReader,
  capabilities: Capabilities,
): Flaw[] {
  const flaws: Flaw[] = [];
  using tree = new OpenTree(task.root);
  for (const { path, entry } of files) {
    try {
      const target = tree.at(path);
      if (task.replace) removeEarlier(target);
      makeFile(target, entry, reader, capabilities, flaws);
    } catch (error) {
      throw asLazarusError(error, `writing ${JSON.stringify(`${task.root}/${path}`)}`, task.root);
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
