// The worker thread that watches the trees of a pit: reads the kernel's queue, at intervals, and answers the pit. What the events
// mean is decided in watch-trees.ts.
import { closeSync, readFileSync, readSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../platform/clock.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { decodeEvents, IN_Q_OVERFLOW } from "../../platform/libc/inotify.ts";
import { posixSupport } from "../../platform/posix.ts";
import { CALM, nextPace, type Pace } from "./burst.ts";
import { createCookie } from "./cookie.ts";
import { type TakenPaths, unknownPaths } from "./dirty-paths.ts";
import { parseMounts } from "./mounts.ts";
import type { TreeWatcherRequest, TreeWatcherResponse } from "./tree-watcher.ts";
import { watchTrees } from "./watch-trees.ts";

const BUFFER_BYTES = 256 * 1024;
/** How often mounts and lost trees are checked. */
const CHECK_MS = 2000;
/** More than the queue usually holds. */
const MAX_EVENTS = 100_000;
/** After this many reads without its event, the cookie counts as lost. */
const MAX_READINGS = 10;

function start(cookies: string) {
  const support = posixSupport();
  if (!support.ok) throw new Error(support.reason);
  const { posix } = support;
  const fd = openQueue(posix.openInotify);
  // Node does not track this descriptor: without this, it and its watches would outlive the worker.
  process.on("exit", () => closeSync(fd));
  const watches = watchTrees({
    add: (path, mask) => posix.addWatch(fd, path, mask),
    remove: (wd) => posix.removeWatch(fd, wd),
    mounts: () => parseMounts(readFileSync("/proc/self/mountinfo", "utf8")),
    limit: () => readFileSync("/proc/sys/fs/inotify/max_user_watches", "utf8"),
  });
  const cookie = createCookie(cookies, (path, mask) => posix.addWatch(fd, path, mask));
  const buffer = Buffer.alloc(BUFFER_BYTES);
  let pace: Pace = CALM;
  /** Reads what is in the queue now, and returns how many events that was. */
  const drain = (): number => {
    let count = 0;
    for (let length = readQueue(fd, buffer); length > 0; length = readQueue(fd, buffer)) {
      for (const event of decodeEvents(buffer, length)) {
        count += (event.mask & IN_Q_OVERFLOW) === 0 ? 1 : Number.POSITIVE_INFINITY;
        if (cookie.receive(event)) continue;
        if (pace.isBurst) watches.note(event);
        else watches.handle(event);
      }
      // The agent writes faster than this reads.
      if (count > MAX_EVENTS) break;
    }
    return count;
  };
  return {
    watches,
    drain,
    /** Handles everything that happened before the call; false when that cannot be proven. */
    sync(): boolean {
      if (!cookie.send()) return false;
      for (let reading = 0; reading < MAX_READINGS && !cookie.isReceived; reading += 1) drain();
      return cookie.isReceived;
    },
    /** Reads the queue and adapts the pace. */
    poll(): Pace {
      pace = nextPace(pace, drain());
      return pace;
    },
  };
}

function openQueue(open: () => number): number {
  try {
    return open();
  } catch (error) {
    if (systemErrorCode(error) !== "EMFILE") throw error;
    throw new Error(
      "the kernel's limit of inotify queues is reached; try: sysctl fs.inotify.max_user_instances=1024",
    );
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
const { watches, drain, sync, poll } = start(workerData.cookies);
const report = () => {
  const reports = watches.report();
  if (reports.length > 0) send({ kind: "changes", reports });
};

function take(key: string): TakenPaths {
  if (sync()) {
    watches.checkMounts();
    return watches.take(key);
  }
  // Every tree is affected, but only this one was asked for.
  watches.take(key);
  return unknownPaths("the watch did not report its own test change");
}

port.on("message", (request: TreeWatcherRequest) => {
  switch (request.kind) {
    case "close":
      return process.exit();
    case "add":
      watches.add(request.key, request.tree);
      break;
    case "remove":
      watches.remove(request.key);
      break;
    case "put-back":
      watches.putBack(request.key, request.taken);
      break;
    case "take": {
      const taken = take(request.key);
      report();
      return send({ kind: "taken", id: request.id, taken });
    }
  }
  drain();
  report();
});

let checkedMs = Number.NEGATIVE_INFINITY;
function next(waitMs: number): void {
  setTimeout(() => {
    const pace = poll();
    const nowMs = systemClock.monotonicMs();
    if (!pace.isBurst && nowMs - checkedMs >= CHECK_MS) {
      checkedMs = nowMs;
      watches.checkMounts();
      watches.refresh();
    }
    // Requests are answered between two parts.
    const hasMore = !pace.isBurst && watches.readOn();
    report();
    next(hasMore ? 0 : pace.waitMs);
  }, waitMs);
}
next(CALM.waitMs);
