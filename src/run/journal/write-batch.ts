// Collects writes that wait at the same time into batches. While batches are under way, further writes wait for the next
// one, so that a busy server gets fewer and larger statements. A batch has at most one write per run.

export interface BatchOptions<Write, Result> {
  /** Batches under way at the same time. */
  readonly parallel: number;
  readonly maxWrites: number;
  keyOf(write: Write): string;
  /** The results in the order of the writes. */
  send(writes: readonly Write[]): Promise<readonly Result[]>;
  /** Used for each write of a batch that failed as a whole, so that one bad write affects no other. */
  sendOne(write: Write): Promise<Result>;
}

interface Waiting<Write, Result> {
  readonly write: Write;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Returns the function that writes. */
export function createWriteBatches<Write, Result>(
  options: BatchOptions<Write, Result>,
): (write: Write) => Promise<Result> {
  let waiting: Waiting<Write, Result>[] = [];
  let underWay = 0;
  let isScheduled = false;

  const take = (): Waiting<Write, Result>[] => {
    const keys = new Set<string>();
    const batch: Waiting<Write, Result>[] = [];
    const rest: Waiting<Write, Result>[] = [];
    for (const each of waiting) {
      const key = options.keyOf(each.write);
      if (batch.length >= options.maxWrites || keys.has(key)) rest.push(each);
      else {
        keys.add(key);
        batch.push(each);
      }
    }
    waiting = rest;
    return batch;
  };
  const start = () => {
    isScheduled = false;
    while (underWay < options.parallel && waiting.length > 0) {
      underWay += 1;
      void deliver(take(), options).finally(() => {
        underWay -= 1;
        start();
      });
    }
  };
  return (write) =>
    new Promise((resolve, reject) => {
      waiting.push({ write, resolve, reject });
      if (isScheduled || underWay >= options.parallel) return;
      isScheduled = true;
      setImmediate(start);
    });
}

async function deliver<Write, Result>(
  batch: readonly Waiting<Write, Result>[],
  { send, sendOne }: BatchOptions<Write, Result>,
): Promise<void> {
  const [only] = batch;
  if (only === undefined) return;
  if (batch.length === 1) return await settle(only, sendOne(only.write));
  try {
    const results = await send(batch.map(({ write }) => write));
    for (const [i, { resolve }] of batch.entries()) resolve(results[i]!);
  } catch {
    await Promise.all(batch.map((each) => settle(each, sendOne(each.write))));
  }
}

async function settle<Write, Result>(
  { resolve, reject }: Waiting<Write, Result>,
  result: Promise<Result>,
): Promise<void> {
  try {
    resolve(await result);
  } catch (error) {
    reject(error);
  }
}
