// Wakes those who wait for changes of a run: at once for changes made in this process, and by polling a version number of
// the database for those of other processes. Polls only while somebody waits.
import type { Clock } from "../../platform/clock.ts";

export interface Listeners extends Disposable {
  /** This process has changed the run. */
  changed(runId: string): void;
  /** This process has sent a message, answered a wait or asked to cancel. */
  signalled(runId: string): void;
  onChange(runId: string, signal: AbortSignal): Promise<void>;
  onSignal(runId: string, signal: AbortSignal): Promise<void>;
}

export interface Poll {
  readonly everyMs: number;
  /** Differs after another process has written. */
  readVersion(): number;
}

type Waiting = Map<string, Set<() => void>>;

export function createListeners(clock: Clock, poll: Poll): Listeners {
  const changes: Waiting = new Map();
  const signals: Waiting = new Map();
  const disposed = new AbortController();
  let isPolling = false;
  const wakeAll = (waiting: Waiting) => {
    for (const runId of [...waiting.keys()]) wake(waiting, runId);
  };
  const pollWhileNeeded = async () => {
    if (isPolling) return;
    isPolling = true;
    let seen = poll.readVersion();
    while (changes.size + signals.size > 0 && !disposed.signal.aborted) {
      await clock.sleep(poll.everyMs, disposed.signal);
      const now = poll.readVersion();
      if (now === seen) continue;
      seen = now;
      wakeAll(changes);
      wakeAll(signals);
    }
    isPolling = false;
  };
  const listen = (waiting: Waiting, runId: string, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted || disposed.signal.aborted) return resolve();
      const done = () => {
        const set = waiting.get(runId);
        set?.delete(done);
        if (set?.size === 0) waiting.delete(runId);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const set = waiting.get(runId) ?? new Set();
      waiting.set(runId, set.add(done));
      signal.addEventListener("abort", done, { once: true });
      void pollWhileNeeded();
    });
  return {
    changed: (runId) => wake(changes, runId),
    signalled: (runId) => wake(signals, runId),
    onChange: (runId, signal) => listen(changes, runId, signal),
    onSignal: (runId, signal) => listen(signals, runId, signal),
    [Symbol.dispose]() {
      disposed.abort();
      wakeAll(changes);
      wakeAll(signals);
    },
  };
}

function wake(waiting: Waiting, runId: string): void {
  for (const done of [...(waiting.get(runId) ?? [])]) done();
}
