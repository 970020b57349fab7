// Takes heartbeats faster than a disk can make them durable: one durable write costs 1 to 2 ms, an answer must not wait
// for a thousand of them. Per mission at most one heartbeat waits, the newest; a batch is written at once when nothing is
// under way, else within 100 ms of the last one's start. A write that failed is told to the mission's next caller, so no
// failure is silent (INV-6). What waits at a power loss is lost with the agent whose life it proved.
import type { MissionId } from "../cell/mission-id.ts";
import type { Clock } from "../platform/clock.ts";
import type { LazarusError } from "../platform/errors.ts";

export interface HeartbeatOrder {
  readonly mission: MissionId;
  readonly status: string | undefined;
  readonly atMs: number;
}

/** Makes a batch durable. Answers with what went wrong, order by order. */
export type WriteHeartbeats = (
  orders: readonly HeartbeatOrder[],
) => Promise<readonly (LazarusError | undefined)[]>;

export interface HeartbeatDesk extends AsyncDisposable {
  /** Returns when the heartbeat, or a later one of its mission, is durable. Throws at once what the last write met. */
  accept(order: HeartbeatOrder): Promise<void>;
  /** Whether a heartbeat of this mission was written a moment ago: then its cell is there. */
  knows(mission: MissionId): boolean;
  readonly counts: { accepted: number; written: number; failed: number };
}

export const COALESCE_MS = 100;
/** How long a written heartbeat vouches for its cell; looking costs three system calls. */
const KNOWN_MS = 2000;

interface Waiting {
  readonly order: HeartbeatOrder;
  readonly done: Promise<void>;
  settle(error: LazarusError | undefined): void;
}

export function openHeartbeatDesk(clock: Clock, write: WriteHeartbeats): HeartbeatDesk {
  let waiting = new Map<MissionId, Waiting>();
  const failures = new Map<MissionId, LazarusError>();
  const writtenMs = new Map<MissionId, number>();
  const counts = { accepted: 0, written: 0, failed: 0 };
  const closing = new AbortController();
  let work: Promise<void> | undefined;

  const flush = async () => {
    while (waiting.size > 0) {
      const startedMs = clock.monotonicMs();
      const batch = [...waiting.values()];
      waiting = new Map();
      const errors = await write(batch.map(({ order }) => order));
      batch.forEach(({ order, settle }, i) => {
        const error = errors[i];
        counts[error === undefined ? "written" : "failed"] += 1;
        if (error === undefined) {
          failures.delete(order.mission);
          writtenMs.set(order.mission, startedMs);
        } else {
          failures.set(order.mission, error);
          writtenMs.delete(order.mission);
        }
        settle(error);
      });
      const leftMs = COALESCE_MS - (clock.monotonicMs() - startedMs);
      if (leftMs > 0) await clock.sleep(leftMs, closing.signal);
    }
    work = undefined;
  };

  return {
    counts,
    knows: (mission) => clock.monotonicMs() - (writtenMs.get(mission) ?? Number.NEGATIVE_INFINITY) < KNOWN_MS,
    async accept(order) {
      const failed = failures.get(order.mission);
      failures.delete(order.mission);
      counts.accepted += 1;
      const before = waiting.get(order.mission);
      const next = createWaiting({ ...order, status: order.status ?? before?.order.status }, before);
      waiting.set(order.mission, next);
      work ??= flush();
      if (failed !== undefined) throw failed;
      return next.done;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await work;
    },
  };
}

/** The newer one takes the place of the one before and answers for it, too: one promise, however many came. */
function createWaiting(order: HeartbeatOrder, before: Waiting | undefined): Waiting {
  if (before !== undefined) return { ...before, order };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Most callers do not wait for it; those who do get the error all the same.
  promise.catch(() => {});
  return { order, done: promise, settle: (error) => (error === undefined ? resolve() : reject(error)) };
}
