// Runs capture tasks and delivers their results in task order: on the calling thread when there is little to read, on
// worker threads otherwise.
import { createWorkerPool } from "../../platform/worker/worker-pool.ts";
import type { CapturedItem, CaptureItem, CaptureTask, Packed, TaskResult } from "../model/capture-item.ts";
import type { TreeRoot } from "../model/cell-tree.ts";
import { runTask } from "./task.ts";
import { decodeReply, type TaskReply } from "./task-reply.ts";

/** Starting workers takes about 30 ms, in which one thread packs this much. */
const INLINE_BYTES = 8 << 20;
const INLINE_TASKS = 2;
/** One task in progress and one queued: a worker that is held up keeps few tasks from the others. 6 took 4 % longer. */
const DEPTH = 2;
const YOUNG_MB = 12;
/** Enough for a member of small files and its compressed form. Only what is written to takes up memory. */
const SHARED_BYTES = 8 << 20;

export interface CapturePool extends AsyncDisposable {
  /** Starts the workers now, if there is enough to read to need them. */
  prepare(totalBytes: number): void;
  /** Calls `take` with each result, in task order. `totalBytes` is about how much the tasks read. */
  run(
    tasks: readonly CaptureTask[],
    totalBytes: number,
    take: (result: TaskResult, index: number) => void,
  ): Promise<void>;
}

export function createCapturePool(): CapturePool {
  const workers = createWorkerPool<CaptureTask, TaskReply>({
    module: "capture-worker",
    from: import.meta.url,
    depth: DEPTH,
    youngGenerationMb: YOUNG_MB,
    sharedBytes: SHARED_BYTES,
  });
  const needsWorkers = (totalBytes: number) => totalBytes >= INLINE_BYTES;
  return {
    prepare(totalBytes) {
      if (needsWorkers(totalBytes)) workers.start();
    },
    async run(tasks, totalBytes, take) {
      if (needsWorkers(totalBytes) && tasks.length > INLINE_TASKS)
        return workers.run(tasks, (reply, index) => take(decodeReply(reply, tasks[index]!), index));
      for (const [index, task] of tasks.entries()) take(runTask(task), index);
    },
    [Symbol.asyncDispose]: () => workers[Symbol.asyncDispose](),
  };
}

export const bytesOf = ({ type, size }: Pick<CaptureItem, "type" | "size">) => (type === "file" ? size : 0);

export const totalBytesOf = (items: readonly Pick<CaptureItem, "type" | "size">[]) =>
  items.reduce((sum, item) => sum + bytesOf(item), 0);

const ITEMS_PER_HASH_TASK = 256;

/** Describes and hashes items without storing them. */
export async function hashItems(
  pool: CapturePool,
  root: TreeRoot,
  items: readonly CaptureItem[],
): Promise<Packed> {
  const tasks: CaptureTask[] = [];
  for (let at = 0; at < items.length; at += ITEMS_PER_HASH_TASK)
    tasks.push({ kind: "hash", codec: "gzip", root, items: items.slice(at, at + ITEMS_PER_HASH_TASK) });
  const captured = new Map<string, CapturedItem>();
  const missed: Packed["missed"][number][] = [];
  await pool.run(tasks, totalBytesOf(items), (result) => {
    for (const item of result.captured) captured.set(item.entry.path, item);
    missed.push(...result.missed);
  });
  return { captured, missed };
}
