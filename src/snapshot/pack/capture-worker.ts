// The worker thread of a capture. All logic is in task.ts.
import { posixSupport } from "../../platform/posix.ts";
import { serveTasks } from "../../platform/worker/worker-pool.ts";
import type { CaptureTask } from "../model/capture-item.ts";
import { runTask } from "./task.ts";
import { encodeReply, type TaskReply } from "./task-reply.ts";

// Takes 80 ms: load it before the first task arrives.
posixSupport();

serveTasks("capturing", (task: CaptureTask, memory) => {
  const result = encodeReply(runTask(task, memory), task);
  return { result, transfer: [result.numbers.buffer, ...ownBuffers(result)] };
});

/** The buffers outside the shared memory, which are moved; small ones are slices of Node's own pool and are copied. */
function ownBuffers({ member }: TaskReply): ArrayBuffer[] {
  const parts = member === undefined ? [] : [member.raw, member.stored];
  return parts
    .map(({ buffer }) => buffer)
    .filter((buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer)
    .filter(({ byteLength }) => byteLength !== Buffer.poolSize);
}
