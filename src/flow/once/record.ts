// The record of an at-most-once command (INV-5): written as started before it starts, and as ended after it ends. What to
// do about an existing record is a pure decision. The file name is a hash of the command's key and the flow's idempotency
// key, so that a new run of the same steps has its own records.
import { closeSync, constants, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { quietly, systemErrorCode } from "../../platform/errors.ts";
import { type JsonObject, readJsonFile } from "../../platform/json-file.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { privatePath } from "../document/private-directory.ts";
import type { FlowPlace } from "../document/workspace.ts";
import { type Liveness, type Owner, parseOwner } from "../locking/owner.ts";

export interface OnceRecord {
  readonly state: "started" | "ended";
  readonly attempt: number;
  readonly owner: Owner;
  readonly startedAt: string;
  readonly commandHash: string;
  readonly exitCode: number | null;
  /** The signal that killed the command, if any. */
  readonly signal: string | null;
  readonly document: JsonObject;
}

/** The state of the command according to its pid file. */
export type Trace =
  | { readonly state: "never-began" | "gone" }
  | { readonly state: "running"; readonly pid: number };

export type OnceDecision =
  | { readonly act: "run"; readonly attempt: number }
  | { readonly act: "replay"; readonly record: OnceRecord }
  | { readonly act: "busy"; readonly why: "owner-alive" | "elsewhere" }
  | { readonly act: "busy"; readonly why: "command-running"; readonly pid: number }
  | { readonly act: "unknown" };

export interface OnceOptions {
  readonly retryUnknown?: boolean | undefined;
  /** Run a command again that exited with a code other than 0. */
  readonly retryFailed?: boolean | undefined;
}

/**
 * A command that exited is replayed. A started one is busy while its owner or the command itself is alive, is run again
 * if it provably never began, and has an unknown outcome otherwise: it is not run again unless that is requested.
 */
export function decideOnce(
  record: OnceRecord | "absent" | "unreadable",
  owner: Liveness,
  trace: Trace,
  options: OnceOptions,
): OnceDecision {
  if (record === "absent") return { act: "run", attempt: 1 };
  if (record === "unreadable") return options.retryUnknown ? { act: "run", attempt: 1 } : { act: "unknown" };
  const again = { act: "run", attempt: record.attempt + 1 } as const;
  if (record.state === "ended") {
    // Killed by a signal: how far it got is unknown.
    if (record.signal !== null) return options.retryUnknown ? again : { act: "unknown" };
    if (!options.retryFailed || record.exitCode === 0) return { act: "replay", record };
    // The exit code is that of a signal: a part of the command was killed and did not report its own failure.
    return wasKilled(record.exitCode ?? 0) && !options.retryUnknown ? { act: "unknown" } : again;
  }
  if (owner === "alive") return { act: "busy", why: "owner-alive" };
  if (owner === "elsewhere") return options.retryUnknown ? again : { act: "busy", why: "elsewhere" };
  if (trace.state === "running") return { act: "busy", why: "command-running", pid: trace.pid };
  if (trace.state === "never-began" || options.retryUnknown) return again;
  return { act: "unknown" };
}

/** Shells report 128 + the number of a signal. */
export function wasKilled(exitCode: number): boolean {
  return exitCode > 128 && exitCode <= 128 + 64;
}

export interface OncePaths {
  readonly directory: string;
  readonly record: string;
  pidFile(attempt: number): string;
}

/** Below the private directory: one folder of records per flow. */
export const ONCE = "once";

export function oncePaths(place: FlowPlace, idempotencyKey: string, key: string): OncePaths {
  const directory = privatePath(place.directory, ONCE, place.stem);
  // With the length of the first part, so that different pairs never give the same text.
  const name = sha256Hex(`${idempotencyKey.length}:${idempotencyKey}${key}`).slice(0, 40);
  return {
    directory,
    record: join(directory, `${name}.json`),
    pidFile: (attempt) => join(directory, `${name}.${attempt}.pid`),
  };
}

const RECORD_LIMIT_BYTES = 8 * 1024 * 1024;

export function readRecord(path: string): OnceRecord | "absent" | "unreadable" {
  const reading = readJsonFile(path, RECORD_LIMIT_BYTES);
  if (!reading.ok) return reading.why === "absent" ? "absent" : "unreadable";
  const { state, attempt, startedAt, commandHash, exitCode, signal } = reading.value;
  const owner = parseOwner(reading.value);
  if (owner === undefined || (state !== "started" && state !== "ended")) return "unreadable";
  if (typeof attempt !== "number" || (state === "ended" && typeof exitCode !== "number")) return "unreadable";
  return {
    state,
    attempt,
    owner,
    startedAt: String(startedAt),
    commandHash: String(commandHash),
    exitCode: typeof exitCode === "number" ? exitCode : null,
    signal: typeof signal === "string" ? signal : null,
    document: reading.value,
  };
}

/** Whether a live process runs a command of this flow. Unreadable records do not count. */
export function hasLiveCommand(place: FlowPlace, isAlive: (owner: Owner) => boolean): boolean {
  return listRecords(place).some((path) => {
    const record = readRecord(path);
    return typeof record !== "string" && record.state === "started" && isAlive(record.owner);
  });
}

export function listRecords({ directory, stem }: FlowPlace): string[] {
  const records = privatePath(directory, ONCE, stem);
  const names = quietly(() => readdirSync(records)) ?? [];
  return names.filter((name) => name.endsWith(".json")).map((name) => join(records, name));
}

const VOID = "void";

/**
 * The state according to the pid file. A missing file is created here, after which that attempt can no longer begin. Only
 * valid within one boot: the file is not durable, so a power loss may have removed it.
 */
export function resolveTrace(pidFile: string, startTimeOf: (pid: number) => string | undefined): Trace {
  try {
    const fd = openSync(pidFile, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    writeSync(fd, VOID);
    closeSync(fd);
    return { state: "never-began" };
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
  }
  const text = readFileSync(pidFile, "latin1");
  if (text === VOID) return { state: "never-began" };
  const pid = Number.parseInt(text, 10);
  // Not written yet, or truncated: the command began, and nothing more is known.
  if (!(pid > 0)) return { state: "gone" };
  const started = text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  const now = startTimeOf(pid);
  if (now === undefined) return { state: "gone" };
  return started === undefined || started === now ? { state: "running", pid } : { state: "gone" };
}
