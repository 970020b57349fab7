// Decides how the end of a run is reported and recorded, as one pure function. Success completes the run, a shutdown
// leaves the record for recovery, an unknown effect parks it, and a lost lease leaves it untouched. Every other error
// fails it, so that it is not retried at every boot.
import { type ErrorCode, LazarusError } from "../../platform/errors.ts";
import { RunStopped, type StopKind } from "./stop.ts";
import { thrownText } from "./thrown.ts";
import type { ResultStatus, RunClosing, StoredError } from "./types.ts";

/** How the phases ended. */
export type Ending =
  | { readonly kind: "finished"; readonly output: string }
  | { readonly kind: "threw"; readonly error: unknown };

/** The result for the caller, and how the record is closed. */
export interface Outcome {
  readonly status: ResultStatus;
  readonly output: string | null;
  readonly error: LazarusError | null;
  /** How to close the record; undefined when this process may not write it. */
  readonly closing: RunClosing | undefined;
}

const STOPS: Readonly<Record<StopKind, { status: ResultStatus; code: ErrorCode }>> = {
  cancelled: { status: "cancelled", code: "RUN_CANCELLED" },
  shutdown: { status: "shutdown", code: "RUN_SHUTDOWN" },
  timeout: { status: "timeout", code: "RUN_TIMEOUT" },
  killed: { status: "killed", code: "RUN_KILLED" },
  "lease-lost": { status: "failed", code: "RUN_STALE_LEASE" },
};

/** Maps an ending to its outcome. Pure. */
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
  // If the record cannot be written or has another owner, it stays open for a process that can continue it.
  const isWritable = !UNWRITABLE.has(failure.code);
  return {
    status: "failed",
    output: null,
    error: failure,
    closing: isWritable ? { status: "failed", output: null, error: storedError(failure) } : undefined,
  };
}

const UNWRITABLE: ReadonlySet<ErrorCode> = new Set([
  "RUN_STALE_LEASE",
  "RUN_OUT_OF_ORDER",
  "RUN_UNKNOWN",
  "RUN_STORE_UNREACHABLE",
  "DISK_FULL",
  "DISK_IO",
  "DISK_READ_ONLY",
]);

/** Any thrown value, as a LazarusError. */
export function asRunError(error: unknown, runId: string): LazarusError {
  if (error instanceof LazarusError) return error;
  return new LazarusError("RUN_MODEL_FAILED", `run ${runId}: ${thrownText(error)}`, {
    hint: `lazarus runs show ${runId}`,
    cause: error,
  });
}

/** A stored error. */
export function restoredError({ code, message, hint }: StoredError): LazarusError {
  return new LazarusError(code as ErrorCode, message, hint === null ? {} : { hint });
}

/** The part of an error that is stored. */
export function storedError(error: LazarusError): StoredError {
  return { code: error.code, message: error.message, hint: error.hint ?? null };
}
