// Work on missions: one thing at a time for each, a few missions at once, and a second call for one that is being worked
// on means once more afterwards. Work never throws; it deals with its own errors.

export interface TaskQueue<Key> {
  /** Attends to a key soon; calls that come before it begins are one. */
  add(key: Key): void;
  /** Other work on a key, in its turn. */
  addWork(key: Key, work: () => Promise<void>): void;
  /** Resolves when nothing is left to do. */
  idle(): Promise<void>;
}

export function createTaskQueue<Key>(atOnce: number, attend: (key: Key) => Promise<void>): TaskQueue<Key> {
  const waiting = new Map<Key, (() => Promise<void>)[]>();
  const asked = new Set<Key>();
  const running = new Set<Key>();
  let sleepers: (() => void)[] = [];
  const push = (key: Key, work: () => Promise<void>) => {
    const list = waiting.get(key);
    if (list === undefined) waiting.set(key, [work]);
    else list.push(work);
    start();
  };
  const start = () => {
    for (const [key, list] of waiting) {
      if (running.size >= atOnce) return;
      if (running.has(key)) continue;
      const work = list.shift()!;
      if (list.length === 0) waiting.delete(key);
      running.add(key);
      void work().finally(() => {
        running.delete(key);
        start();
        if (running.size + waiting.size > 0) return;
        const awake = sleepers;
        sleepers = [];
        for (const wake of awake) wake();
      });
    }
  };
  return {
    add(key) {
      if (asked.has(key)) return;
      asked.add(key);
      push(key, () => {
        asked.delete(key);
        return attend(key);
      });
    },
    addWork: push,
    idle: () =>
      running.size + waiting.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => sleepers.push(resolve)),
  };
}
