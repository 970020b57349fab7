// Workers that stay small. Starting a process copies the page tables of the one that starts it, once more for every
// 100 MB that it uses: 1 ms of CPU time from a new worker, 33 ms from one of 450 MB, and the tests start tens of
// thousands of processes. So a worker runs one test file after another until it uses too much memory, and is then replaced.
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { ForksPoolWorker, type PoolOptions, type PoolWorker } from "vitest/node";

/** A new worker uses 40 MB. With 80 MB here nearly every file got a new one, and the tests took 4 % more CPU time. */
const MAX_BYTES = 160 * 2 ** 20;

class SmallWorker extends ForksPoolWorker implements PoolWorker {
  override readonly name = "small-workers";
  #pid: number | undefined;
  #isTooLarge = false;

  override async start(): Promise<void> {
    await super.start();
    const worker = this;
    this.on("message", function (this: ChildProcess) {
      worker.#pid = this.pid;
    });
  }

  canReuse(): boolean {
    this.#isTooLarge ||= privateBytes(this.#pid) > MAX_BYTES;
    return !this.#isTooLarge;
  }
}

/** Memory that is copied when the process forks; 0 where it is unknown, so that every worker is used again. */
function privateBytes(pid: number | undefined): number {
  try {
    const [, kilobytes] = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

export const smallWorkers = {
  name: "small-workers",
  createPoolWorker: (options: PoolOptions) => new SmallWorker(options),
};
