// LazarusError and the table of its codes. An error says what happened to which object (message) and what to type next
// (hint). Its identity is the code, since errors are stored and read back. Exit codes and HTTP statuses come only from
// this table.

/** The kind of an error, which decides exit code and HTTP status. */
export type ErrorKind =
  | "internal"
  | "usage"
  | "alert"
  | "unknown-outcome"
  | "degraded"
  | "missing"
  | "conflict"
  | "damaged"
  | "machine"
  | "busy"
  | "unsupported"
  | "config"
  | "command"
  | "interrupted";

interface KindTraits {
  readonly exit: number;
  readonly http: number;
  /** True when the same call may succeed later without a change. */
  readonly retry: boolean;
  readonly meaning: string;
}

/** Exit code, HTTP status and retry advice of each kind of error. */
export const ERROR_KINDS: Readonly<Record<ErrorKind, KindTraits>> = {
  internal: { exit: 1, http: 500, retry: false, meaning: "unexpected failure; please report it" },
  usage: { exit: 2, http: 400, retry: false, meaning: "wrong command line or request" },
  alert: { exit: 3, http: 200, retry: false, meaning: "the check ran and found a problem" },
  "unknown-outcome": { exit: 4, http: 409, retry: false, meaning: "an effect has an unknown outcome" },
  degraded: {
    exit: 5,
    http: 200,
    retry: false,
    meaning: "done, but some paths were skipped, torn or degraded",
  },
  missing: { exit: 6, http: 404, retry: false, meaning: "no such mission, checkpoint, flow, run or file" },
  conflict: { exit: 7, http: 409, retry: false, meaning: "refused: it would undo or repeat something" },
  damaged: { exit: 8, http: 500, retry: false, meaning: "stored data is damaged" },
  machine: { exit: 9, http: 507, retry: true, meaning: "disk full, read-only, no permission, I/O error" },
  busy: { exit: 10, http: 423, retry: true, meaning: "another process holds a lock or lease" },
  unsupported: { exit: 11, http: 501, retry: false, meaning: "not supported by this machine or version" },
  config: { exit: 78, http: 500, retry: false, meaning: "invalid configuration" },
  command: { exit: 127, http: 422, retry: false, meaning: "the command is not found or not executable" },
  interrupted: { exit: 130, http: 499, retry: true, meaning: "stopped by a signal" },
};

/** Every error code and its kind. */
export const ERROR_CODES = {
  INTERNAL: "internal",
  USAGE: "usage",
  NOT_CONFIRMED: "usage",
  MISSION_ID_INVALID: "usage",
  MISSION_UNKNOWN: "missing",
  MISSION_OUTSIDE_ROOT: "conflict",
  CELL_DAMAGED: "damaged",
  WORKTREE_NOT_EMPTY: "conflict",
  WORKTREE_MISSING: "missing",
  WORKTREE_REFUSED: "conflict",
  WORKTREE_RELEASED: "conflict",
  WORKTREE_REPLACED: "conflict",
  GIT_FAILED: "machine",
  CONFIG_INVALID: "config",
  CONFIG_MISSING: "config",
  REGISTRY_NEWER: "unsupported",
  REGISTRY_FOREIGN: "conflict",
  REGISTRY_DAMAGED: "damaged",
  RUN_UNKNOWN: "missing",
  RUN_ID_INVALID: "usage",
  RUN_ID_TAKEN: "conflict",
  RUN_AGENT_INVALID: "usage",
  RUN_STALE_LEASE: "conflict",
  RUN_BUSY: "busy",
  RUN_ENDED: "conflict",
  RUN_OUT_OF_ORDER: "conflict",
  RUN_NEWER: "unsupported",
  RUN_DAMAGED: "damaged",
  RUN_PLAINTEXT: "damaged",
  RUN_KEY_WRONG: "config",
  RUN_STORE_NEWER: "unsupported",
  RUN_STORE_FOREIGN: "conflict",
  RUN_STORE_DAMAGED: "damaged",
  RUN_STORE_UNREACHABLE: "busy",
  RUN_MODEL_FAILED: "machine",
  RUN_MODEL_ENDLESS: "machine",
  RUN_STEPS_EXHAUSTED: "alert",
  RUN_BUDGET_SPENT: "alert",
  RUN_NEEDS_HUMAN: "unknown-outcome",
  RUN_NOT_STORABLE: "usage",
  RUN_UNSUPPORTED: "usage",
  RUN_CHANGED: "conflict",
  RUN_RESTARTED: "busy",
  RUN_WAITING: "busy",
  RUN_APPROVAL_INVALID: "conflict",
  RUN_TIMEOUT: "interrupted",
  RUN_KILLED: "interrupted",
  RUN_CANCELLED: "interrupted",
  RUN_SHUTDOWN: "interrupted",
  RUN_STEP_UNKNOWN: "missing",
  EFFECT_UNKNOWN: "missing",
  EFFECT_SETTLED: "conflict",
  PEER_MISSING: "unsupported",
  HOOKS_UNSUPPORTED: "unsupported",
  CONVERSATION_UNSUPPORTED: "unsupported",
  PERSONA_INVALID: "config",
  SKILL_INVALID: "config",
  VAULT_DAMAGED: "damaged",
  LAYER_DAMAGED: "damaged",
  CHECKPOINT_DAMAGED: "damaged",
  CHECKPOINT_UNKNOWN: "missing",
  CHECKPOINT_FAILED: "machine",
  CHECKPOINT_NEWER: "unsupported",
  CELL_UNREADABLE: "machine",
  CELL_IN_USE: "busy",
  VAULT_MISPLACED: "conflict",
  TARGET_NOT_EMPTY: "conflict",
  NOTHING_TO_UNDO: "missing",
  LAYER_HOSTILE: "damaged",
  ARCHIVE_UNSUPPORTED: "unsupported",
  FLOW_ID_INVALID: "usage",
  FLOW_AMBIGUOUS: "usage",
  FLOW_SECRET: "usage",
  FLOW_PLAN_INVALID: "usage",
  FLOW_UNKNOWN: "missing",
  FLOW_EXISTS: "conflict",
  FLOW_ALREADY_DONE: "conflict",
  FLOW_FINISHED: "conflict",
  FLOW_OUTSIDE_ROOT: "conflict",
  FLOW_DAMAGED: "damaged",
  FLOW_NEWER: "unsupported",
  FLOW_LOCKED: "busy",
  FLOW_BUSY: "busy",
  FLOW_OUTCOME_UNKNOWN: "unknown-outcome",
  LOCK_HELD: "busy",
  CELL_NOT_WATCHED: "busy",
  PIT_DIFFERS: "busy",
  PIT_RUNNING: "busy",
  AGENT_RUNNING: "busy",
  SESSION_IN_USE: "busy",
  AGENT_UNKNOWN: "missing",
  AGENT_NOT_RUNNING: "missing",
  AGENT_NOT_STARTED: "machine",
  AGENT_IMMORTAL: "machine",
  AGENT_DUE: "conflict",
  CALL_UNANSWERED: "unknown-outcome",
  COMMAND_NOT_FOUND: "command",
  CONSENT_REFUSED: "conflict",
  AGENT_RECORD_DAMAGED: "damaged",
  EPOCH_FENCED: "conflict",
  ROUTE_UNKNOWN: "missing",
  METHOD_REFUSED: "usage",
  TOKEN_REFUSED: "usage",
  TOKEN_EXPOSED: "config",
  TOKEN_EXISTS: "conflict",
  TOKEN_UNKNOWN: "missing",
  SCOPE_REFUSED: "usage",
  HOST_REFUSED: "usage",
  ORIGIN_REFUSED: "usage",
  BODY_TOO_LARGE: "usage",
  BODY_INVALID: "usage",
  HTTP_ADDRESS_TAKEN: "busy",
  WEBHOOK_OFF: "missing",
  SIGNATURE_REFUSED: "usage",
  DELIVERY_REPEATED: "conflict",
  PROPOSAL_INVALID: "usage",
  MISSION_EXISTS: "conflict",
  PLATFORM_UNSUPPORTED: "unsupported",
  DISK_FULL: "machine",
  DISK_READ_ONLY: "machine",
  DISK_IO: "machine",
  PERMISSION: "machine",
  TOO_MANY_FILES: "machine",
  NOT_FOUND: "missing",
  INTERRUPTED: "interrupted",
} as const satisfies Record<string, ErrorKind>;

/** The identity of an error. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Codes whose HTTP status differs from that of their kind. */
const HTTP_STATUSES: Partial<Record<ErrorCode, number>> = {
  TOKEN_REFUSED: 401,
  SIGNATURE_REFUSED: 401,
  SCOPE_REFUSED: 403,
  HOST_REFUSED: 403,
  ORIGIN_REFUSED: 403,
  METHOD_REFUSED: 405,
  BODY_TOO_LARGE: 413,
  PROPOSAL_INVALID: 422,
};

export interface ErrorExtras {
  readonly hint?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

interface ErrorChange extends Pick<ErrorExtras, "hint" | "details"> {
  readonly consequence?: string;
}

/** Every error of Lazarus: a code, a message, a hint, details and a cause. */
export class LazarusError extends Error {
  override readonly name = "LazarusError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.hint = extras.hint;
    this.details = extras.details ?? {};
  }

  get kind(): ErrorKind {
    return ERROR_CODES[this.code];
  }

  get exitCode(): number {
    return ERROR_KINDS[this.kind].exit;
  }

  get httpStatus(): number {
    return HTTP_STATUSES[this.code] ?? ERROR_KINDS[this.kind].http;
  }

  /** The same error with a consequence at the end of its message, another hint, or more details. */
  with({ consequence, hint = this.hint, details }: ErrorChange): LazarusError {
    const message = consequence === undefined ? this.message : `${this.message}; ${consequence}`;
    const all = { ...this.details, ...details };
    return new LazarusError(this.code, message, { hint, details: all, cause: this.cause });
  }

  /** Its hint, and what else could be done. */
  hintOr(alternative: string): string {
    return this.hint === undefined ? alternative : `${this.hint}; or ${alternative}`;
  }

  toJSON(): {
    code: ErrorCode;
    message: string;
    hint: string | null;
    details: Readonly<Record<string, unknown>>;
  } {
    return { code: this.code, message: this.message, hint: this.hint ?? null, details: this.details };
  }
}

const SYSTEM_ERRORS: Readonly<Record<string, { code: ErrorCode; message: string; hint: string }>> = {
  ENOSPC: {
    code: "DISK_FULL",
    message: "the disk is full",
    hint: "free some space (lazarus prune removes old checkpoints, df -h DIR shows the disk), then run the same command again",
  },
  EDQUOT: {
    code: "DISK_FULL",
    message: "the disk quota is used up",
    hint: "free some space (lazarus prune removes old checkpoints, quota -s shows what is used), then run the same command again",
  },
  EROFS: {
    code: "DISK_READ_ONLY",
    message: "the file system is read-only",
    hint: "mount | grep ro, or point LAZARUS_HOME at a writable directory",
  },
  EIO: {
    code: "DISK_IO",
    message: "the disk reports an I/O error",
    hint: "dmesg | tail, and check the disk before you trust it",
  },
  EACCES: {
    code: "PERMISSION",
    message: "permission denied",
    hint: "ls -ld DIR, or run as the user who owns it",
  },
  EPERM: {
    code: "PERMISSION",
    message: "operation not permitted",
    hint: "ls -ld DIR, or run as the user who owns it",
  },
  EMFILE: {
    code: "TOO_MANY_FILES",
    message: "this process has too many open files",
    hint: "ulimit -n 4096, then run the same command again",
  },
  ENFILE: {
    code: "TOO_MANY_FILES",
    message: "the system has too many open files",
    hint: "run the same command again in a moment",
  },
  ENOENT: { code: "NOT_FOUND", message: "no such file or directory", hint: "ls -la DIR" },
  ENOTDIR: { code: "NOT_FOUND", message: "a part of the path is not a directory", hint: "ls -ld DIR" },
};

/** The code of a system error (`ENOSPC` …), or undefined for any other value. */
export function systemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && typeof error.code === "string")) return undefined;
  if (!error.code.startsWith("Unknown system error")) return error.code;
  // libuv has no name for some errors, such as EDQUOT, but the errno is correct.
  const number = "errno" in error && typeof error.errno === "number" ? Math.abs(error.errno) : undefined;
  const names = Object.entries(process.getBuiltinModule("node:os").constants.errno);
  return names.find(([, value]) => value === number)?.[0] ?? error.code;
}

/**
 * Converts anything thrown to a LazarusError. `doing` says what was being done to which object
 * ("writing /x/heartbeat.json"); `directory` completes the hint.
 */
export function asLazarusError(error: unknown, doing: string, directory = "."): LazarusError {
  if (error instanceof LazarusError) return error;
  const known = SYSTEM_ERRORS[systemErrorCode(error) ?? ""];
  if (known) {
    return new LazarusError(known.code, `${doing}: ${known.message}`, {
      // A function, since `$&` in a directory's name would be read as a replacement pattern.
      hint: known.hint.replace("DIR", () => directory),
      cause: error,
    });
  }
  return new LazarusError("INTERNAL", `${doing}: ${messageOf(error)}`, { cause: error });
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The result of `read`; undefined when it throws, for what may vanish, be unreadable or be malformed at any time. */
export function quietly<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const EXHAUSTED: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

/** Throws when the machine has run out of descriptors or memory: a partial walk would look like deletions. */
export function refuseExhaustion(error: unknown, doing: string, directory: string): void {
  if (error instanceof LazarusError) throw error;
  if (EXHAUSTED.has(systemErrorCode(error) ?? "")) throw asLazarusError(error, doing, directory);
}
