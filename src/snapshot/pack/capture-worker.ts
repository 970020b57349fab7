// The shell of a capture worker: takes tasks, sends results. All thinking is in capture-task.ts.
import { parentPort } from "node:worker_threads";
import { asLazarusError } from "../../platform/errors.ts";
import { posixSupport } from "../../platform/posix.ts";
import { hearTasks } from "../../platform/worker-module.ts";
import type { CaptureTask } from "../model/capture-item.ts";
import { toColumns } from "./captured-columns.ts";
import { runTask } from "./task.ts";

const port = parentPort!;

// 80 ms, which the first task would wait for: loaded while it is still being laid out.
posixSupport();

hearTasks(port, ({ id, task }: { id: number; task: CaptureTask }) => {
  try {
    const { captured, ...result } = runTask(task);
    const columns = toColumns(captured, task.kind === "piece" ? [] : task.items);
    const parts = result.member === undefined ? [] : [result.member.raw, result.member.stored];
    port.postMessage({ id, result, columns }, [
      columns.numbers.buffer,
      ...(parts.filter(ownsItsMemory).map(({ buffer }) => buffer) as ArrayBuffer[]),
    ]);
  } catch (error) {
    // An error that crosses threads loses its code, and with it what can be said about it.
    const { message, hint, code } = asLazarusError(error, "capturing");
    port.postMessage({ id, error: { message, hint, code } });
  }
});

/** Shared memory stays where it is; small buffers are cut from a pool that others use as well, and are copied. */
function ownsItsMemory({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength !== Buffer.poolSize;
}
