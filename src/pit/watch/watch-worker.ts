// The worker thread that watches the trees of a pit. All logic is in watch-trees.ts. The kernel's queue is read at intervals:
// reading every event as it comes would slow down the agent that causes them.
import { readSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { systemErrorCode } from "../../platform/errors.ts";
import { posixSupport } from "../../platform/posix.ts";
import type { TreeWatcherRequest, TreeWatcherResponse } from "./tree-watcher.ts";
import { type TreeWatches, watchTrees } from "./watch-trees.ts";

const POLL_MS = 100;
const BUFFER_BYTES = 256 * 1024;

function start(): { watches: TreeWatches; drain(): void } {
  const support = posixSupport();
  if (!support.ok) throw new Error(support.reason);
  const { posix } = support;
  const fd = openQueue(posix.openInotify);
  const watches = watchTrees({
    add: (path, mask) => posix.addWatch(fd, path, mask),
    remove: (wd) => posix.removeWatch(fd, wd),
  });
  const buffer = Buffer.alloc(BUFFER_BYTES);
  return {
    watches,
    /** Reads what is in the queue now. */
    drain() {
      for (let round = 0; round < 64; round += 1) {
        const length = readQueue(fd, buffer);
        if (length === 0) return;
        watches.handle(buffer, length);
      }
    },
  };
}

function openQueue(open: () => number): number {
  try {
    return open();
  } catch (error) {
    if (systemErrorCode(error) !== "EMFILE") throw error;
    throw new Error("the kernel's limit of inotify queues is reached: sysctl fs.inotify.max_user_instances");
  }
}

/** 0 when the queue is empty. */
function readQueue(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if (systemErrorCode(error) === "EAGAIN") return 0;
    throw error;
  }
}

const port = parentPort!;
const send = (response: TreeWatcherResponse) => port.postMessage(response);
const { watches, drain } = start();
const report = () => {
  const reports = watches.report();
  if (reports.length > 0) send({ kind: "changes", reports });
};
port.on("message", (request: TreeWatcherRequest) => {
  if (request.kind === "add") watches.add(request.key, request.tree);
  else if (request.kind === "remove") watches.remove(request.key);
  // The kernel queues an event before the call that caused it returns.
  drain();
  report();
  if (request.kind === "sync") send({ kind: "synced", id: request.id });
});
setInterval(() => {
  drain();
  report();
}, POLL_MS);
