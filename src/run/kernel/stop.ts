// Why a run stops before it is done: one error with a kind, used as the reason of the run's abort signal.
// A stop by `shutdown` leaves the record for boot recovery; every other one ends it.

import { LazarusError } from "../../platform/errors.ts";

/** Why a run was stopped. */
export type StopKind = "cancelled" | "shutdown" | "timeout" | "killed" | "lease-lost";

/** The reason of an aborted run. */
export class RunStopped extends Error {
  override readonly name = "RunStopped";
  readonly kind: StopKind;

  constructor(kind: StopKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Abort a run's signal with this when the host goes down: the run stays in the store and is resumed at next boot. */
export class ShutdownError extends Error {
  override readonly name = "ShutdownError";

  constructor(message = "the host is shutting down") {
    super(message);
  }
}

/** What an abort reason means. Reasons from another copy of this module are known by their name. */
export function stopOf(reason: unknown): RunStopped {
  if (reason instanceof RunStopped) return reason;
  const message = reason instanceof Error ? reason.message : String(reason);
  if (reason instanceof Error && reason.name === "ShutdownError") return new RunStopped("shutdown", message);
  if (reason instanceof Error && reason.name === "TimeoutError") return new RunStopped("timeout", message);
  return new RunStopped("cancelled", message || "the run was cancelled");
}

/** Settles with `work`, or rejects as soon as the signal aborts: a model or tool that ignores it cannot hold the run. */
export function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    return Promise.reject(reasonOf(signal));
  }
  return new Promise((resolve, reject) => {
    const stop = () => reject(reasonOf(signal));
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** A limit that one call ran into is an error of its own; everything else stops the run. */
function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof LazarusError ? signal.reason : stopOf(signal.reason);
}
