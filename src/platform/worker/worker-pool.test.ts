import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { stopWorkers } from "./worker-pool.ts";

const WORK = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { gzipSync } = require("node:zlib");
  import(workerData).then(({ serveTasks }) => {
    serveTasks("compressing", (count) => {
      for (let i = 0; i < count; i += 1) gzipSync("text");
      return { result: "done" };
    });
    parentPort.postMessage("ready");
  });
`;

async function startCompressor(): Promise<Worker> {
  const workerData = new URL("./worker-pool.ts", import.meta.url).href;
  const worker = new Worker(WORK, { eval: true, workerData });
  await once(worker, "message");
  return worker;
}

test("workers finish queued tasks before they stop, even while compressing", async () => {
  const workers = await Promise.all([startCompressor(), startCompressor(), startCompressor()]);
  const results: string[] = [];
  for (const worker of workers) worker.on("message", ({ result }) => results.push(result));
  for (const worker of workers) worker.postMessage({ index: 0, task: 2000 });
  await stopWorkers(workers);
  expect(results).toEqual(["done", "done", "done"]);
});

test("a worker that has already exited is not waited for", async () => {
  const worker = await startCompressor();
  await worker.terminate();
  await stopWorkers([worker]);
});
