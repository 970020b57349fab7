// Tells the pit which trees changed. One worker thread and one inotify queue for all missions. Where a tree cannot be
// watched, it says why, and the pit examines that tree at intervals; nothing here ever fails.
import type { Worker } from "node:worker_threads";
import { startWorker } from "../../platform/worker-module.ts";
import type { TreeReport, WatchedTree } from "./watch-trees.ts";

export type { WatchedTree } from "./watch-trees.ts";

export interface TreeChanges {
  /** Changes since the tree was added; only differences mean something. */
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
  /** Resolves when everything that changed before the call is counted. */
  sync(): Promise<void>;
}

export type TreeWatcherRequest =
  | { readonly kind: "add"; readonly key: string; readonly tree: WatchedTree }
  | { readonly kind: "remove"; readonly key: string }
  | { readonly kind: "sync"; readonly id: number };

export type TreeWatcherResponse =
  | { readonly kind: "changes"; readonly reports: readonly TreeReport[] }
  | { readonly kind: "synced"; readonly id: number };

export function openTreeWatcher(): TreeWatcher {
  const trees = new Map<string, string>();
  const known = new Map<string, TreeChanges>();
  const waiting = new Map<number, () => void>();
  let failure: string | undefined = process.platform === "linux" ? undefined : "only Linux can watch cells";
  let worker: Worker | undefined;
  let syncs = 0;
  const fail = (reason: string) => {
    failure ??= reason;
    for (const resolve of waiting.values()) resolve();
    waiting.clear();
  };
  const receive = (response: TreeWatcherResponse) => {
    if (response.kind === "synced") {
      waiting.get(response.id)?.();
      waiting.delete(response.id);
      return;
    }
    for (const { key, changes, unwatched } of response.reports)
      if (trees.has(key)) known.set(key, { changes, unwatched });
  };
  const send = (request: TreeWatcherRequest) => {
    if (failure !== undefined) return;
    // Started with the first tree: most commands of the library never need it.
    worker ??= start(receive, fail);
    worker.postMessage(request);
  };
  const remove = (key: string) => {
    if (!trees.delete(key)) return;
    known.delete(key);
    send({ kind: "remove", key });
  };
  return {
    add(key, tree) {
      const text = JSON.stringify(tree);
      if (trees.get(key) === text) return;
      remove(key);
      trees.set(key, text);
      send({ kind: "add", key, tree });
    },
    remove,
    read(key) {
      if (failure !== undefined) return { changes: 0, unwatched: failure };
      return known.get(key);
    },
    async sync() {
      if (failure !== undefined) return;
      syncs += 1;
      const id = syncs;
      await new Promise<void>((resolve) => {
        waiting.set(id, resolve);
        send({ kind: "sync", id });
      });
    },
    async [Symbol.asyncDispose]() {
      fail("the watcher is closed");
      await worker?.terminate();
    },
  };
}

function start(receive: (response: TreeWatcherResponse) => void, fail: (reason: string) => void): Worker {
  const worker = startWorker("watch-worker", import.meta.url);
  worker.on("message", receive);
  worker.on("error", (error) => fail(error instanceof Error ? error.message : String(error)));
  worker.on("exit", () => fail("the worker that watches cells has ended"));
  worker.unref();
  return worker;
}
