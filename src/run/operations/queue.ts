// Queues of runs: their settings and their runs. The settings are in the journal, so that every process that works
// for a queue uses the same limits.
import { LazarusError } from "../../platform/errors.ts";
import type { QueueSettings, RateLimit } from "../journal/queue.ts";
import type { RunLog } from "../log/run-log.ts";

/** The current state of a queue. */
export interface QueueView {
  readonly queue: string;
  readonly settings: QueueSettings;
  /** Runs by status. A waiting run holds no slot. */
  readonly queued: number;
  readonly running: number;
  readonly waiting: number;
  /** Callers that have runs in the queue, by number of queued and running ones. */
  readonly callers: Readonly<Record<string, { readonly queued: number; readonly running: number }>>;
}

/** All queues that have settings or open runs, by name. */
export async function listQueues({ journal }: RunLog): Promise<QueueView[]> {
  const settings = await journal.readQueues();
  const open = await journal.list({ statuses: ["queued", "running", "waiting"] });
  const names = new Set([...settings.keys(), ...open.flatMap(({ queue }) => queue ?? [])]);
  return [...names].sort().map((queue) => {
    const runs = open.filter((head) => head.queue === queue);
    const count = (status: string, of = runs) => of.filter((head) => head.status === status).length;
    const callers = [...new Set(runs.flatMap(({ caller }) => caller ?? []))].sort().map((caller) => {
      const own = runs.filter((head) => head.caller === caller);
      return [caller, { queued: count("queued", own), running: count("running", own) }];
    });
    return {
      queue,
      settings: settings.get(queue) ?? {},
      ...{ queued: count("queued"), running: count("running"), waiting: count("waiting") },
      callers: Object.fromEntries(callers),
    };
  });
}

/** Sets the limits of a queue; null removes them. Takes effect with the next run that is started. */
export async function setQueue(log: RunLog, queue: string, settings: QueueSettings | null): Promise<void> {
  if (queue === "" || queue.length > MAX_NAME)
    throw invalid(`the name of a queue has 1 to ${MAX_NAME} characters`);
  if (settings !== null) check(settings);
  await log.journal.writeQueue(queue, settings);
}

const MAX_NAME = 200;
const COUNTS = ["total", "perWorker", "perCaller", "perModel"] as const;
const RATES = ["calls", "tokens"] as const;

function check(settings: QueueSettings): void {
  for (const name of COUNTS) {
    const limit = settings[name];
    if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 0))
      throw invalid(`${name} is ${limit}`);
  }
  for (const name of RATES) {
    const rate: RateLimit | undefined = settings[name];
    if (rate !== undefined && !(rate.amount > 0 && rate.perMs > 0)) {
      throw invalid(`${name} allows ${rate.amount} in ${rate.perMs} ms`);
    }
  }
}

function invalid(problem: string): LazarusError {
  return new LazarusError("USAGE", `invalid queue: ${problem}`, {
    hint: "limits are integers, 0 or more (0 pauses the queue); rates are more than 0 in more than 0 ms",
  });
}
