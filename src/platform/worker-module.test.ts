import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { dismissWorkers } from "./worker-module.ts";

const WORK = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { gzipSync } = require("node:zlib");
  import(workerData).then(({ hearTasks }) => {
    hearTasks(parentPort, (count) => {
      for (let i = 0; i < count; i += 1) gzipSync("text");
      parentPort.postMessage("done");
    });
    parentPort.postMessage("ready");
  });
`;

async function startPacker(): Promise<Worker> {
  const workerData = new URL("./worker-module.ts", import.meta.url).href;
  const worker = new Worker(WORK, { eval: true, workerData });
  await once(worker, "message");
  return worker;
}

test("workers end after what they have in hand, even in the middle of packing", async () => {
  const workers = await Promise.all([startPacker(), startPacker(), startPacker()]);
  const done: string[] = [];
  for (const worker of workers) worker.on("message", (text) => done.push(text));
  for (const worker of workers) worker.postMessage(2000);
  await dismissWorkers(workers);
  expect(done).toEqual(["done", "done", "done"]);
});

test("one that is gone already is not waited for", async () => {
  const worker = await startPacker();
  await worker.terminate();
  await dismissWorkers([worker]);
});
