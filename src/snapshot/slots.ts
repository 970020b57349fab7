// Limits how many missions of one process do heavy work (CPU, disk) at the same time, so that a pit with many missions stays
// responsive. First come, first served. With `maxHoldMs` a slot only limits load: work that takes longer continues without its
// slot, so a mission with a slow disk does not keep others waiting.
import type { Clock } from "../platform/clock.ts";

export interface Slots {
  acquire(): Promise<Disposable>;
}

export function createSlots(clock: Clock, count: number, maxHoldMs?: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async acquire() {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      const over = new AbortController();
      const giveBack = () => {
        if (over.signal.aborted) return;
        over.abort();
        release();
      };
      if (maxHoldMs !== undefined) void clock.sleep(maxHoldMs, over.signal).then(giveBack, giveBack);
      return { [Symbol.dispose]: giveBack };
    },
  };
}
