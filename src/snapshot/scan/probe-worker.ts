// The worker thread of a probe. The cache is shared memory, so nothing is copied.
import { parentPort } from "node:worker_threads";
import { checkChunks, type ProbeTask } from "./probe.ts";
import { decodeStatCache } from "./stat-cache.ts";

parentPort!.once("message", (task: ProbeTask) => {
  const cache = decodeStatCache(task.cache, true);
  if (cache !== undefined) checkChunks(task, cache);
});
