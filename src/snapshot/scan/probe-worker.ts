// The shell of a probing thread: the cache's bytes are shared, so nothing is copied on the way in or out.
import { parentPort } from "node:worker_threads";
import { type ProbeTask, workThrough } from "./probe.ts";
import { decodeStatCache } from "./stat-cache.ts";

parentPort!.once("message", (task: ProbeTask) => {
  const cache = decodeStatCache(task.cache, true);
  if (cache !== undefined) workThrough(task, cache);
});
