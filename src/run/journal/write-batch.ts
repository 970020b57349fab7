// Collects writes that wait at the same time into batches. While batches are in flight, further writes wait for the next
// one, so that a busy server gets fewer and larger statements. A batch has at most one write per run. Low-priority writes fill
// the places that the others leave free, but get at least `minLow` of a full batch.

export interface BatchOptions<Write, Result> {
  /** Batches in flight at the same time. */
  readonly parallel: number;
  readonly maxWrites: number;
  keyOf(write: Write): string;
  /** Whether others go first. */
  isLow?(write: Write): boolean;
  /** How many of those a full batch has at least, if that many wait. */
  readonly minLow?: number;
  /** The results in the order of the writes; undefined for those that failed together. */
  send(writes: readonly Write[]): Promise<readonly (Result | undefined)[]>;
  /** Used for each write that failed together with others, so that one bad write affects no other. */
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
    const add = (from: readonly Waiting<Write, Result>[], limit: number) => {
      for (const each of from) {
        const key = options.keyOf(each.write);
        if (batch.length >= limit || keys.has(key)) continue;
        keys.add(key);
        batch.push(each);
      }
    };
    const isLow = ({ write }: Waiting<Write, Result>) => options.isLow?.(write) === true;
    const low = waiting.filter(isLow);
    add(
      waiting.filter((each) => !isLow(each)),
      options.maxWrites - Math.min(low.length, options.minLow ?? 0),
    );
    add(low, options.maxWrites);
    const taken = new Set(batch);
    waiting = waiting.filter((each) => !taken.has(each));
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
  const results = await send(batch.map(({ write }) => write)).catch(() => []);
  for (const [i, { resolve }] of batch.entries()) {
    const result = results[i];
    if (result !== undefined) resolve(result);
  }
  const failed = batch.filter((_, i) => results[i] === undefined);
  await Promise.all(failed.map((each) => settle(each, sendOne(each.write))));
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
