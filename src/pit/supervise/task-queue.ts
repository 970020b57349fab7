// Tasks by key: one at a time per key, all keys concurrently, so that no key waits for another. Adding a key whose task is
// running runs it once more afterwards. Tasks handle their own errors and never reject.

export interface TaskQueue<Key> {
  /** Runs the key's task soon; calls before it starts are merged. */
  add(key: Key): void;
  /** Queues other work on a key. */
  addWork(key: Key, work: () => Promise<void>): void;
  /** Resolves when the queue is empty and nothing is running. */
  idle(): Promise<void>;
}

export function createTaskQueue<Key>(task: (key: Key) => Promise<void>): TaskQueue<Key> {
  const waiting = new Map<Key, (() => Promise<void>)[]>();
  const requested = new Set<Key>();
  const running = new Set<Key>();
  let idleCallbacks: (() => void)[] = [];
  const push = (key: Key, work: () => Promise<void>) => {
    const list = waiting.get(key);
    if (list === undefined) waiting.set(key, [work]);
    else list.push(work);
    start();
  };
  const start = () => {
    for (const [key, list] of waiting) {
      if (running.has(key)) continue;
      const work = list.shift()!;
      if (list.length === 0) waiting.delete(key);
      running.add(key);
      void work().finally(() => {
        running.delete(key);
        start();
        if (running.size + waiting.size > 0) return;
        const callbacks = idleCallbacks;
        idleCallbacks = [];
        for (const call of callbacks) call();
      });
    }
  };
  return {
    add(key) {
      if (requested.has(key)) return;
      requested.add(key);
      push(key, () => {
        requested.delete(key);
        return task(key);
      });
    },
    addWork: push,
    idle: () =>
      running.size + waiting.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => idleCallbacks.push(resolve)),
  };
}
