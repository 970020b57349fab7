// Tells the pit what changed in the trees of its missions. One worker thread and one inotify queue for all of them. Where a tree
// cannot be watched, it says why, and the pit examines that tree at intervals; nothing here ever fails. A worker that ends is
// started again a few times, without knowledge of earlier changes.
import type { Worker, WorkerOptions } from "node:worker_threads";
import { messageOf } from "../../platform/errors.ts";
import { startWorker } from "../../platform/worker-module.ts";
import { type TakenPaths, unknownPaths } from "./dirty-paths.ts";
import type { TreeReport, WatchedTree } from "./watch-trees.ts";

export type { TakenPaths } from "./dirty-paths.ts";
export type { WatchedTree } from "./watch-trees.ts";

export interface TreeChanges {
  /**
   * Changes that are a reason to save; only differences between two values matter. It only grows, even when the tree is replaced or its
   * worker ends: unknown changes in between count as one change.
   */
  readonly changes: number;
  /** Why the tree is not watched; null: it is. */
  readonly unwatched: string | null;
}

export interface TreeWatcher extends AsyncDisposable {
  /** Adding the same tree again does nothing; another one with the same key replaces it. */
  add(key: string, tree: WatchedTree): void;
  remove(key: string): void;
  /** Undefined until the tree is being watched. */
  read(key: string): TreeChanges | undefined;
  /** What changed since the last call; unknown the first time. Later changes are for the next call. Everything earlier is counted then. */
  take(key: string): Promise<TakenPaths>;
  /** Puts back a set that could not be saved; it becomes part of the next one. */
  putBack(key: string, taken: TakenPaths): void;
}

export type TreeWatcherRequest =
  | { readonly kind: "add"; readonly key: string; readonly tree: WatchedTree }
  | { readonly kind: "remove"; readonly key: string }
  | { readonly kind: "put-back"; readonly key: string; readonly taken: TakenPaths }
  | { readonly kind: "take"; readonly id: number; readonly key: string }
  | { readonly kind: "close" };

export type TreeWatcherResponse =
  | { readonly kind: "changes"; readonly reports: readonly TreeReport[] }
  | { readonly kind: "taken"; readonly id: number; readonly taken: TakenPaths };

export interface TreeWatcherOptions {
  /** The watcher's own directory, outside all trees. */
  readonly cookies: string;
  start?(name: string, from: string, options: WorkerOptions): Worker;
}

const MAX_RESTARTS = 3;
/** It keeps little of what it allocates: a small young generation saves memory and costs no time. */
const YOUNG_GENERATION_MB = 2;

export function openTreeWatcher({ cookies, start = startWorker }: TreeWatcherOptions): TreeWatcher {
  const options = {
    workerData: { cookies },
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  };
  return new WorkerWatcher(() => start("watch-worker", import.meta.url, options));
}

class WorkerWatcher implements TreeWatcher {
  private readonly trees = new Map<string, WatchedTree>();
  private readonly known = new Map<string, TreeChanges>();
  /** Counted before the watch of a tree that exists now. */
  private readonly earlier = new Map<string, number>();
  private readonly waiting = new Map<number, (taken: TakenPaths) => void>();
  private readonly start: () => Worker;
  private failure = process.platform === "linux" ? undefined : "only Linux can watch cells";
  private worker: Worker | undefined;
  private restarts = 0;
  private requests = 0;

  constructor(start: () => Worker) {
    this.start = start;
  }

  add(key: string, tree: WatchedTree): void {
    if (JSON.stringify(this.trees.get(key)) === JSON.stringify(tree)) return;
    this.remove(key);
    this.trees.set(key, tree);
    this.send({ kind: "add", key, tree });
  }

  remove(key: string): void {
    if (!this.trees.delete(key)) return;
    this.forget(key);
    this.send({ kind: "remove", key });
  }

  read(key: string): TreeChanges | undefined {
    if (this.failure !== undefined) return { changes: 0, unwatched: this.failure };
    return this.known.get(key);
  }

  async take(key: string): Promise<TakenPaths> {
    if (this.failure !== undefined) return unknownPaths(this.failure);
    this.requests += 1;
    const id = this.requests;
    return await new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send({ kind: "take", id, key });
    });
  }

  putBack(key: string, taken: TakenPaths): void {
    this.send({ kind: "put-back", key, taken });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fail("the watcher is closed");
    const { worker } = this;
    if (worker === undefined) return;
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    worker.postMessage({ kind: "close" } satisfies TreeWatcherRequest);
    await ended;
  }

  private send(request: TreeWatcherRequest): void {
    if (this.failure !== undefined) return;
    // Started with the first tree: most commands of the library never need it.
    this.worker ??= this.startWorker();
    this.worker.postMessage(request);
  }

  private startWorker(): Worker {
    const worker = this.start();
    let reason = "the worker that watches cells has ended";
    worker.on("message", (response: TreeWatcherResponse) => this.receive(response));
    worker.on("error", (error) => {
      reason = messageOf(error);
    });
    worker.on("exit", () => this.restart(reason));
    worker.unref();
    return worker;
  }

  private restart(reason: string): void {
    this.worker = undefined;
    if (this.failure !== undefined) return;
    if (this.restarts >= MAX_RESTARTS) {
      this.fail(reason);
      return;
    }
    this.restarts += 1;
    this.answerAll(reason);
    for (const [key, tree] of this.trees) {
      this.forget(key);
      this.send({ kind: "add", key, tree });
    }
  }

  private forget(key: string): void {
    const changes = this.known.get(key)?.changes ?? this.earlier.get(key) ?? 0;
    this.earlier.set(key, changes + 1);
    this.known.delete(key);
  }

  private fail(reason: string): void {
    this.failure ??= reason;
    this.answerAll(reason);
  }

  private answerAll(reason: string): void {
    for (const resolve of this.waiting.values()) resolve(unknownPaths(reason));
    this.waiting.clear();
  }

  private receive(response: TreeWatcherResponse): void {
    if (response.kind === "changes") {
      for (const { key, changes, unwatched } of response.reports)
        if (this.trees.has(key))
          this.known.set(key, { changes: (this.earlier.get(key) ?? 0) + changes, unwatched });
      return;
    }
    this.waiting.get(response.id)?.(response.taken);
    this.waiting.delete(response.id);
  }
}
