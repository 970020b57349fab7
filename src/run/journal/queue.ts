// Which queued runs to start, and how long a rate limit makes a call wait. Pure; the same for all journals.

/** How many runs of a queue may be `running` at the same time; a limit that is left out does not apply. */
export interface QueueLimits {
  readonly total?: number | undefined;
  readonly perWorker?: number | undefined;
  readonly perCaller?: number | undefined;
  readonly perModel?: number | undefined;
}

/** The limits of a queue: how many concurrent runs, and how many model calls or tokens per time. */
export interface QueueSettings extends QueueLimits {
  readonly calls?: RateLimit | undefined;
  readonly tokens?: RateLimit | undefined;
}

/** A worker asks for the next runs of a queue. */
export interface QueueClaim {
  readonly queue: string;
  /** Only runs of this agent; those of others count for the limits. */
  readonly agentId?: string | undefined;
  /** Only runs that this version of the agent started. Default: all. */
  readonly definition?: string | undefined;
  /** The owner of each claimed run starts with this. */
  readonly worker: string;
  /** One owner for each run that may be claimed; unique for each claim. */
  readonly owners: readonly string[];
  readonly limits: QueueLimits;
  readonly leaseUntilMs: number;
  readonly nowMs: number;
}

/** A bucket of model calls or tokens, refilled at a constant rate. */
export interface RateLimit {
  readonly amount: number;
  readonly perMs: number;
}

/** What a model call takes from the buckets of a queue. A bucket may become negative: then the next call waits longer. */
export interface RateUse {
  readonly queue: string;
  readonly calls?: { readonly limit: RateLimit; readonly used: number } | undefined;
  readonly tokens?: { readonly limit: RateLimit; readonly used: number } | undefined;
  /** Take it although the buckets are empty: tokens are known only after the call. */
  readonly force?: boolean;
  readonly nowMs: number;
}

/** A run that may be started: the first ones of each caller, best first. */
export interface Candidate {
  readonly id: string;
  readonly caller: string | null;
  readonly model: string | null;
  readonly priority: number;
  /** Lower is older. */
  readonly position: number;
}

/** A run of the queue that is running. */
export interface Running {
  readonly caller: string | null;
  readonly model: string | null;
  readonly isMine: boolean;
}

/** The ids to claim, at most `count`, in the order in which to claim them. */
export function chooseQueued(
  candidates: readonly Candidate[],
  running: readonly Running[],
  limits: QueueLimits,
  count: number,
): string[] {
  const callers = countBy(running, ({ caller }) => caller);
  const models = countBy(running, ({ model }) => model);
  let total = running.length;
  let mine = running.filter(({ isMine }) => isMine).length;
  const left = new Set(candidates);
  const chosen: string[] = [];
  const fits = ({ caller, model }: Candidate) =>
    isBelow(callers.get(caller), limits.perCaller) &&
    (model === null || isBelow(models.get(model), limits.perModel));
  while (chosen.length < count && isBelow(total, limits.total) && isBelow(mine, limits.perWorker)) {
    let best: Candidate | undefined;
    for (const each of left)
      if (fits(each) && (best === undefined || isBefore(each, best, callers))) best = each;
    if (best === undefined) break;
    left.delete(best);
    chosen.push(best.id);
    callers.set(best.caller, (callers.get(best.caller) ?? 0) + 1);
    models.set(best.model, (models.get(best.model) ?? 0) + 1);
    total += 1;
    mine += 1;
  }
  return chosen;
}

function isBefore(a: Candidate, b: Candidate, callers: ReadonlyMap<string | null, number>): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  const [x, y] = [callers.get(a.caller) ?? 0, callers.get(b.caller) ?? 0];
  return x === y ? a.position < b.position : x < y;
}

function isBelow(count: number | undefined, limit: number | undefined): boolean {
  return limit === undefined || (count ?? 0) < limit;
}

function countBy<T, K>(all: readonly T[], keyOf: (each: T) => K): Map<K, number> {
  const counts = new Map<K, number>();
  for (const each of all) counts.set(keyOf(each), (counts.get(keyOf(each)) ?? 0) + 1);
  return counts;
}

/** A bucket in its stored form: what was left at a given time. */
export interface Bucket {
  readonly left: number;
  readonly atMs: number;
}

/** The bucket after taking `used`, and how long to wait first; 0 when it is taken. */
export function takeFrom(
  bucket: Bucket | undefined,
  limit: RateLimit,
  used: number,
  nowMs: number,
): { readonly bucket: Bucket; readonly waitMs: number } {
  const perMs = limit.amount / limit.perMs;
  // A clock that was set back refills nothing.
  const elapsedMs = bucket === undefined ? 0 : Math.max(0, nowMs - bucket.atMs);
  const left = bucket === undefined ? limit.amount : Math.min(limit.amount, bucket.left + elapsedMs * perMs);
  // A call larger than the bucket would wait forever: it waits for a full one.
  const needed = Math.min(used, limit.amount);
  const waitMs = left >= needed ? 0 : Math.ceil((needed - left) / perMs);
  return { bucket: { left: left - used, atMs: nowMs }, waitMs };
}

/** The buckets of a queue after a call, by name, and how long to wait first; 0 when all have enough. */
export function takeAll(
  { queue, calls, tokens, nowMs }: RateUse,
  find: (name: string) => Bucket | undefined,
): { readonly taken: readonly (readonly [name: string, bucket: Bucket])[]; readonly waitMs: number } {
  const parts = [
    { name: `calls ${queue}`, part: calls },
    { name: `tokens ${queue}`, part: tokens },
  ];
  const results = parts.flatMap(({ name, part }) =>
    part === undefined ? [] : [{ name, ...takeFrom(find(name), part.limit, part.used, nowMs) }],
  );
  return {
    taken: results.map(({ name, bucket }) => [name, bucket] as const),
    waitMs: Math.max(0, ...results.map(({ waitMs }) => waitMs)),
  };
}
