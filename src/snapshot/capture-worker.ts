// The shell of a capture worker: takes tasks, sends results. All thinking is in capture-task.ts.
import { parentPort } from "node:worker_threads";
import type { CaptureTask } from "./capture-item.ts";
import { runTask } from "./capture-task.ts";

const port = parentPort!;

port.on("message", ({ id, task }: { id: number; task: CaptureTask }) => {
  try {
    const result = runTask(task);
    const transfer = result.member ? [result.member.raw.buffer, result.member.stored.buffer] : [];
    port.postMessage({ id, result }, [...new Set(transfer)] as ArrayBuffer[]);
  } catch (error) {
    port.postMessage({ id, error: error instanceof Error ? error : new Error(String(error)) });
  }
});
