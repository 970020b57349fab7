// Errors as plain data, to send them to another thread or process: class instances do not survive structured cloning.
import { asLazarusError, type ErrorCode, LazarusError } from "../errors.ts";

export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  readonly cause: string | undefined;
}

/** `doing` describes the work in an unexpected error. */
export function toSentError(error: unknown, doing: string): SentError {
  const { code, message, hint, details, cause } = asLazarusError(error, doing);
  return { code, message, hint, details, cause: cause instanceof Error ? cause.message : undefined };
}

export function fromSentError({ code, message, hint, details, cause }: SentError): LazarusError {
  return new LazarusError(code, message, { hint, details, ...(cause && { cause: new Error(cause) }) });
}
