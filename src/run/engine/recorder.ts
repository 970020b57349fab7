// Writes the entries of one run in order. Writes that are waiting when one begins share it, so that a response is saved
// together with `started` of its first call, and results of reads with the next response. A failed write is repeated as
// it was before anything new is written. Renews the lease while the run is quiet, and notices when it is lost (INV-4).
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { HeadRow, Sync, WaitRow } from "../journal/journal.ts";
import { type Entry, keyOf } from "../log/entry.ts";
import { type LogWrite, type RunLog, writeRun } from "../log/run-log.ts";
import { RunStopped } from "../model/stop.ts";
import type { Lease } from "../model/types.ts";

type HeadValues = NonNullable<LogWrite["head"]>;

interface Batch {
  readonly entries: Map<string, Entry>;
  readonly waits: Map<string, WaitRow>;
  readonly taken: string[];
  head: HeadValues;
  sync: Sync;
  release: boolean;
}

/** The writer of one run. */
export class Recorder {
  readonly lease: Lease;
  /** Aborts when another process has taken the run over. */
  readonly lost: AbortSignal;
  redactions: number;
  readonly #log: RunLog;
  readonly #lost = new AbortController();
  readonly #ended = new AbortController();
  #seq: number;
  #next: Batch = emptyBatch();
  #failed: Batch | undefined;
  #writing: Promise<void> = Promise.resolve();
  #scheduled: Promise<void> | undefined;
  #lastMs: number;
  #savedMs = Number.NEGATIVE_INFINITY;

  constructor(log: RunLog, lease: Lease, head: Pick<HeadRow, "seq" | "redactions">) {
    this.#log = log;
    this.lease = lease;
    this.#seq = head.seq;
    this.redactions = head.redactions;
    this.lost = this.#lost.signal;
    this.#lastMs = log.machine.clock.monotonicMs();
    void this.#renew();
  }

  /** Milliseconds since the last successful write; infinite before the first. */
  get unsavedMs(): number {
    return this.#log.machine.clock.monotonicMs() - this.#savedMs;
  }

  /** Number of writes so far. */
  get seq(): number {
    return this.#seq;
  }

  /** Adds entries to the next write; only effects that start or end need `full`. */
  put(entries: readonly Entry[], sync: Sync = "lazy"): void {
    for (const entry of entries) this.#next.entries.set(keyOf(entry.step, entry.kind, entry.call), entry);
    if (sync === "full") this.#next.sync = "full";
  }

  wait(wait: WaitRow): void {
    this.#next.waits.set(wait.id, wait);
    this.#next.sync = "full";
  }

  take(messageIds: readonly string[]): void {
    this.#next.taken.push(...messageIds);
  }

  head(change: HeadValues): void {
    this.#next.head = { ...this.#next.head, ...change };
  }

  /** Writes what was added so far. Throws when it cannot be written. */
  flush(): Promise<void> {
    this.#scheduled ??= this.#writing.then(() => {
      this.#scheduled = undefined;
      this.#writing = this.#write().catch(() => {});
      return this.#result!;
    });
    return this.#scheduled;
  }

  /** Writes a last time, releases the lease and stops renewing it. */
  async close(head: HeadValues): Promise<void> {
    this.#ended.abort();
    this.head(head);
    this.#next.sync = "full";
    this.#next.release = true;
    crashPoint("engine.close.before");
    await this.flush();
    crashPoint("engine.close.after");
  }

  /** Stops renewing the lease without writing. */
  stop(): void {
    this.#ended.abort();
  }

  #result: Promise<void> | undefined;

  #write(): Promise<void> {
    this.#result = (async () => {
      if (this.#failed !== undefined) await this.#send(this.#failed);
      this.#failed = undefined;
      const batch = this.#next;
      if (isEmpty(batch)) return;
      this.#next = emptyBatch();
      await this.#send(batch);
    })();
    this.#result.catch(() => {});
    return this.#result;
  }

  async #send(batch: Batch): Promise<void> {
    if (this.lost.aborted) throw this.lost.reason;
    crashPoint("engine.save.before");
    try {
      this.redactions += await writeRun(this.#log, this.lease, {
        seq: this.#seq + 1,
        sync: batch.sync,
        entries: [...batch.entries.values()],
        waits: [...batch.waits.values()],
        taken: batch.taken,
        head: batch.head,
        release: batch.release,
      });
    } catch (error) {
      this.#failed = batch;
      throw this.#lostOr(error);
    }
    this.#seq += 1;
    this.#lastMs = this.#log.machine.clock.monotonicMs();
    this.#savedMs = this.#lastMs;
    crashPoint("engine.save.after");
  }

  #lostOr(error: unknown): unknown {
    if (!(error instanceof LazarusError) || error.code !== "RUN_STALE_LEASE") return error;
    const stop = new RunStopped("lease-lost", "another process took this run over; nothing more is written");
    if (!this.lost.aborted) this.#lost.abort(stop);
    return stop;
  }

  async #renew(): Promise<void> {
    const { journal, leaseMs, machine } = this.#log;
    const everyMs = Math.max(1, leaseMs / 3);
    while (!this.#ended.signal.aborted) {
      await machine.clock.sleep(everyMs, this.#ended.signal);
      // Every write renews the lease too, so this matters only for a run that is quiet.
      if (this.#ended.signal.aborted || machine.clock.monotonicMs() - this.#lastMs < everyMs) continue;
      try {
        const { runId, epoch } = this.lease;
        const untilMs = Math.floor(machine.clock.nowMs()) + leaseMs;
        if ((await journal.renewLease(runId, epoch, untilMs)) || this.#ended.signal.aborted) continue;
        this.#lost.abort(new RunStopped("lease-lost", "another process took this run over"));
        return;
      } catch {
        // The store is unreachable. Either it comes back before the lease ends, or the next write fails.
      }
    }
  }
}

function emptyBatch(): Batch {
  return { entries: new Map(), waits: new Map(), taken: [], head: {}, sync: "lazy", release: false };
}

function isEmpty({ entries, waits, taken, head, release }: Batch): boolean {
  return entries.size + waits.size + taken.length === 0 && Object.keys(head).length === 0 && !release;
}
