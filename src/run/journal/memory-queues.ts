// Queues, rate limits and ticks of the journal in memory.
import type { HeadRow, Journal } from "./journal.ts";
import { type Bucket, chooseQueued, type QueueSettings, takeAll } from "./queue.ts";

type Queues = Pick<
  Journal,
  "claimQueued" | "readQueues" | "writeQueue" | "takeRate" | "readTick" | "writeTick"
>;

/** The heads of all runs, and how to change one. */
export interface Heads {
  heads(): readonly HeadRow[];
  change(id: string, change: Partial<HeadRow>): HeadRow;
}

export function createMemoryQueues({ heads, change }: Heads): Queues {
  const buckets = new Map<string, Bucket>();
  const ticks = new Map<string, number>();
  const settings = new Map<string, QueueSettings>();
  return {
    async claimQueued({ queue, agentId, definition, worker, owners, limits, leaseUntilMs, nowMs }) {
      const all = heads().filter((head) => head.queue === queue);
      const isReady = ({ status, wakeMs }: HeadRow) =>
        status === "queued" || (status === "waiting" && wakeMs !== null && wakeMs <= nowMs);
      const candidates = all
        .filter(
          (head) =>
            isReady(head) &&
            (agentId ?? head.agentId) === head.agentId &&
            (definition ?? head.definition) === head.definition,
        )
        .map((head, position) => ({ ...head, model: head.model ?? null, position }));
      const running = all
        .filter(({ status }) => status === "running")
        .map((head) => ({
          ...head,
          model: head.model ?? null,
          isMine: head.owner?.startsWith(worker) ?? false,
        }));
      return chooseQueued(candidates, running, limits, owners.length).map((id, i) => {
        const { epoch } = all.find((head) => head.id === id)!;
        const owner = owners[i]!;
        return change(id, {
          ...{ epoch: epoch + 1, owner, leaseUntilMs, status: "running", wakeMs: null, updatedAtMs: nowMs },
        });
      });
    },
    readQueues: async () => new Map(settings),
    async writeQueue(queue, set) {
      if (set === null) settings.delete(queue);
      else settings.set(queue, set);
    },
    async takeRate(use) {
      const { taken, waitMs } = takeAll(use, (name) => buckets.get(name));
      if (waitMs > 0 && !use.force) return waitMs;
      for (const [name, bucket] of taken) buckets.set(name, bucket);
      return 0;
    },
    readTick: async (schedule) => ticks.get(schedule),
    async writeTick(schedule, tickMs) {
      if ((ticks.get(schedule) ?? Number.NEGATIVE_INFINITY) >= tickMs) return false;
      ticks.set(schedule, tickMs);
      return true;
    },
  };
}
