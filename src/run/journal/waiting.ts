// Waiters for changes of a run.

export interface Waiting {
  readonly runIds: readonly string[];
  /** Resolves with the next wake-up, or when the signal aborts. */
  wait(runId: string, signal: AbortSignal): Promise<void>;
  wake(runId: string): void;
  wakeAll(): void;
}

export function createWaiting(): Waiting {
  const waiting = new Map<string, Set<() => void>>();
  const wake = (runId: string) => {
    for (const done of [...(waiting.get(runId) ?? [])]) done();
  };
  return {
    get runIds() {
      return [...waiting.keys()];
    },
    wait: (runId, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const done = () => {
          const all = waiting.get(runId);
          all?.delete(done);
          if (all?.size === 0) waiting.delete(runId);
          signal.removeEventListener("abort", done);
          resolve();
        };
        waiting.set(runId, (waiting.get(runId) ?? new Set()).add(done));
        signal.addEventListener("abort", done, { once: true });
      }),
    wake,
    wakeAll() {
      for (const runId of [...waiting.keys()]) wake(runId);
    },
  };
}
