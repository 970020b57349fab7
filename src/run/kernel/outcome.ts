// How a run's end is reported and recorded, as one pure function: success completes, a shutdown leaves the record for
// boot recovery, an open question parks it, a lost lease touches nothing, and everything else fails it for good, so
// that nothing is retried at every boot for ever.
import { type ErrorCode, LazarusError } from "../../platform/errors.ts";
import { thrownText } from "../model/thrown.ts";
import type { ResultStatus, StoredError } from "../model/types.ts";
import type { RunClosing } from "../store/store.ts";
import type { StopKind } from "./stop.ts";
import { RunStopped } from "./stop.ts";

/** How the work itself came to an end. */
export type Ending =
  | { readonly kind: "finished"; readonly output: string }
  | { readonly kind: "threw"; readonly error: unknown };

/** What the caller is told, and how the record is left. */
export interface Outcome {
  readonly status: ResultStatus;
  readonly output: string | null;
  readonly error: LazarusError | null;
  /** How to leave the record; nothing when it is not ours any more. */
  readonly closing: RunClosing | undefined;
}

const STOPS: Readonly<Record<StopKind, { status: ResultStatus; code: ErrorCode }>> = {
  cancelled: { status: "cancelled", code: "RUN_CANCELLED" },
  shutdown: { status: "shutdown", code: "RUN_SHUTDOWN" },
  timeout: { status: "timeout", code: "RUN_TIMEOUT" },
  killed: { status: "killed", code: "RUN_KILLED" },
  "lease-lost": { status: "failed", code: "RUN_STALE_LEASE" },
};

/** The one place that decides what an ending means. */
export function decideOutcome(ending: Ending, runId: string): Outcome {
  if (ending.kind === "finished") {
    const { output } = ending;
    return {
      status: "completed",
      output,
      error: null,
      closing: { status: "completed", output, error: null },
    };
  }
  const { error } = ending;
  if (error instanceof RunStopped) {
    const { status, code } = STOPS[error.kind];
    const failure = new LazarusError(code, `run ${runId}: ${error.message}`, {
      hint: `lazarus runs show ${runId}`,
    });
    const base = { status, output: null, error: failure };
    if (error.kind === "lease-lost") return { ...base, closing: undefined };
    if (error.kind === "shutdown") return { ...base, closing: { status: "interrupted" } };
    return {
      ...base,
      closing: { status: error.kind, output: null, error: storedError(failure) },
    };
  }
  const failure = asRunError(error, runId);
  if (failure.code === "RUN_NEEDS_HUMAN") {
    return {
      status: "needs-human",
      output: null,
      error: failure,
      closing: { status: "needs-human", error: storedError(failure) },
    };
  }
  if (failure.code === "RUN_TIMEOUT") {
    const closing = { status: "timeout", output: null, error: storedError(failure) } as const;
    return { status: "timeout", output: null, error: failure, closing };
  }
  // The record cannot be written, or is someone else's: whoever can, goes on with it.
  const untouchable = UNTOUCHABLE.has(failure.code);
  return {
    status: "failed",
    output: null,
    error: failure,
    closing: untouchable ? undefined : { status: "failed", output: null, error: storedError(failure) },
  };
}

const UNTOUCHABLE: ReadonlySet<ErrorCode> = new Set([
  "RUN_STALE_LEASE",
  "RUN_OUT_OF_ORDER",
  "RUN_UNKNOWN",
  "RUN_STORE_UNREACHABLE",
  "DISK_FULL",
  "DISK_IO",
  "DISK_READ_ONLY",
]);

/** Whatever was thrown, as one of the house's errors. */
export function asRunError(error: unknown, runId: string): LazarusError {
  if (error instanceof LazarusError) return error;
  return new LazarusError("RUN_MODEL_FAILED", `run ${runId}: ${thrownText(error)}`, {
    hint: `lazarus runs show ${runId}`,
    cause: error,
  });
}

/** The part of an error that is stored and revived. */
export function storedError(error: LazarusError): StoredError {
  return { code: error.code, message: error.message, hint: error.hint ?? null };
}
