// The worker thread of a capture. All logic is in task.ts.
import { posixSupport } from "../../platform/posix.ts";
import { serveTasks } from "../../platform/worker-pool.ts";
import type { CaptureTask, TaskResult } from "../model/capture-item.ts";
import { runTask } from "./task.ts";

// Takes 80 ms: load it before the first task arrives.
posixSupport();

serveTasks("capturing", (task: CaptureTask) => {
  const result = runTask(task);
  return { result, transfer: ownBuffers(result) };
});

/** The buffers that can be moved to the main thread; small ones are slices of Node's shared pool and are copied. */
function ownBuffers({ member }: TaskResult): ArrayBuffer[] {
  const parts = member === undefined ? [] : [member.raw, member.stored];
  return parts
    .map(({ buffer }) => buffer)
    .filter((buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer)
    .filter(({ byteLength }) => byteLength !== Buffer.poolSize);
}
