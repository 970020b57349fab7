// Notifies waiters of changes of runs in a SQLite file: immediately for changes made in this process, by polling the file's version for those
// of other processes. Polls only while something waits.
import type { Clock } from "../../platform/clock.ts";
import { createWaiting } from "./waiting.ts";

export interface ChangeNotifier extends Disposable {
  /** This process has changed the run. */
  changed(runId: string): void;
  /** This process has sent a message, answered a wait or asked to cancel. */
  signalled(runId: string): void;
  onChange(runId: string, signal: AbortSignal): Promise<void>;
  onSignal(runId: string, signal: AbortSignal): Promise<void>;
}

/** How soon a change by another process is noticed. */
const POLL_MS = 25;

/** `readVersion` differs after another process has written. */
export function createChangeNotifier(clock: Clock, readVersion: () => number): ChangeNotifier {
  const changes = createWaiting();
  const signals = createWaiting();
  const disposed = new AbortController();
  let isPolling = false;
  const poll = async () => {
    if (isPolling) return;
    isPolling = true;
    let seen = readVersion();
    while (changes.runIds.length + signals.runIds.length > 0 && !disposed.signal.aborted) {
      await clock.sleep(POLL_MS, disposed.signal);
      if (disposed.signal.aborted) break;
      const now = readVersion();
      if (now === seen) continue;
      seen = now;
      changes.wakeAll();
      signals.wakeAll();
    }
    isPolling = false;
  };
  return {
    changed: changes.wake,
    signalled: signals.wake,
    async onChange(runId, signal) {
      const done = changes.wait(runId, signal);
      void poll();
      await done;
    },
    async onSignal(runId, signal) {
      const done = signals.wait(runId, signal);
      void poll();
      await done;
    },
    [Symbol.dispose]() {
      disposed.abort();
      changes.wakeAll();
      signals.wakeAll();
    },
  };
}

/** For a database that no other process can write to. */
export function createMemoryNotifier(): ChangeNotifier {
  const changes = createWaiting();
  const signals = createWaiting();
  return {
    changed: changes.wake,
    signalled: signals.wake,
    onChange: changes.wait,
    onSignal: signals.wait,
    [Symbol.dispose]() {
      changes.wakeAll();
      signals.wakeAll();
    },
  };
}
