// Why a run stops early: one error with a kind, used as the reason of the run's abort signal. A `shutdown` leaves the
// record for recovery at the next boot; every other kind ends the run, except a lost lease, which leaves it alone.
import { LazarusError } from "../../platform/errors.ts";

/** Why a run was stopped. */
export type StopKind = "cancelled" | "shutdown" | "timeout" | "killed" | "lease-lost";

/** The abort reason of a stopped run. */
export class RunStopped extends Error {
  override readonly name = "RunStopped";
  readonly kind: StopKind;

  constructor(kind: StopKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Abort a run's signal with this when the host shuts down: the run stays in the store and is resumed at the next boot. */
export class ShutdownError extends Error {
  override readonly name = "ShutdownError";

  constructor(message = "the host is shutting down") {
    super(message);
  }
}

/** Converts any abort reason. Errors from another copy of this module are recognized by name. */
export function stopOf(reason: unknown): RunStopped {
  if (reason instanceof RunStopped) return reason;
  const message = reason instanceof Error ? reason.message : String(reason);
  if (reason instanceof Error && reason.name === "ShutdownError") return new RunStopped("shutdown", message);
  if (reason instanceof Error && reason.name === "TimeoutError") return new RunStopped("timeout", message);
  return new RunStopped("cancelled", message || "the run was cancelled");
}

/** Resolves with `work`, or rejects when the signal aborts, even if the model or tool ignores the signal. */
export function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    return Promise.reject(reasonOf(signal));
  }
  return new Promise((resolve, reject) => {
    const stop = () => reject(reasonOf(signal));
    const end = () => signal.removeEventListener("abort", stop);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject);
    work.then(end, end);
  });
}

/** A LazarusError is the failure of one call, such as its timeout; every other reason stops the run. */
function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof LazarusError ? signal.reason : stopOf(signal.reason);
}
