// Notifies waiters of changes of runs in PostgreSQL. Signals (messages, answers, requests to cancel) come by NOTIFY on one connection that is
// opened for the first waiter; when it breaks, all waiters are woken, because a signal may have been lost. Changes of
// followed runs are polled, all of them with one query.
import type { Clock } from "../../platform/clock.ts";
import type { PostgresPool } from "../../platform/postgres/pool.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { createWaiting } from "./waiting.ts";

export interface ChangeNotifier extends AsyncDisposable {
  /** For NOTIFY; the payload is the id of a run. */
  readonly channel: string;
  /** This process has changed the run. */
  changed(runId: string): void;
  /** Resolves when the run has writes after `afterSeq`, including earlier ones, or when its parts have changed. */
  onChange(runId: string, afterSeq: number, signal: AbortSignal): Promise<void>;
  onSignal(runId: string, signal: AbortSignal): Promise<void>;
}

/** What differs when a run has changed. */
export interface RunVersion {
  readonly id: string;
  readonly seq: number;
}

const POLL_MS = 50;

/** The server refuses names of more than 63 characters. */
function channelOf(schema: string): string {
  const name = `${schema}_run_signal`;
  return name.length <= 63 ? name : `s${sha256Hex(schema).slice(0, 32)}_run_signal`;
}

export function createChangeNotifier(
  clock: Clock,
  pool: PostgresPool,
  readVersions: (runIds: readonly string[]) => Promise<readonly RunVersion[]>,
): ChangeNotifier {
  const channel = channelOf(pool.schema);
  const changes = createWaiting();
  const signals = createWaiting();
  const disposed = new AbortController();
  /** The last write that the waiters for a run have seen. */
  const known = new Map<string, number>();
  let polling: Promise<void> | undefined;
  let listening: Promise<void> | undefined;

  const wake = (runId: string) => {
    known.delete(runId);
    changes.wake(runId);
  };
  const poll = async () => {
    const seen = new Map<string, string>();
    while (changes.runIds.length > 0 && !disposed.signal.aborted) {
      // While the server is unreachable, changes are not visible.
      const rows = await readVersions(changes.runIds).catch(() => []);
      for (const row of rows) {
        const version = JSON.stringify(row);
        const before = seen.get(row.id);
        seen.set(row.id, version);
        const hasWrites = row.seq > (known.get(row.id) ?? row.seq);
        if (hasWrites || (before !== undefined && before !== version)) wake(row.id);
      }
      await clock.sleep(POLL_MS, disposed.signal);
    }
    polling = undefined;
  };
  // A signal may have been sent before the connection listened.
  const listener = { ready: signals.wakeAll, hear: signals.wake };
  const listenForSignals = async () => {
    while (!disposed.signal.aborted) {
      await pool.listen(channel, listener, disposed.signal).catch(() => {});
      signals.wakeAll();
      await clock.sleep(POLL_MS, disposed.signal);
    }
  };
  return {
    channel,
    changed: wake,
    async onChange(runId, afterSeq, signal) {
      known.set(runId, Math.min(afterSeq, known.get(runId) ?? afterSeq));
      const done = changes.wait(runId, signal);
      polling ??= poll();
      await done;
    },
    async onSignal(runId, signal) {
      const done = signals.wait(runId, signal);
      listening ??= listenForSignals();
      await done;
    },
    async [Symbol.asyncDispose]() {
      disposed.abort();
      changes.wakeAll();
      signals.wakeAll();
      await Promise.all([polling, listening]);
    },
  };
}
