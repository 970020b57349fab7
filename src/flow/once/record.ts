// The record of one at-most-once command (INV-5): entered as started before it starts, as ended after it ends. What to
// do with a record that is found is a pure decision. Keys are any text; the file's name is their hash, together with
// the flow's idempotency key, so that a new run of the same steps has records of its own.
import { closeSync, constants, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemErrorCode } from "../../platform/errors.ts";
import { type JsonObject, readJsonFile } from "../../platform/json-file.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { ownPath } from "../document/private-directory.ts";
import type { FlowPlace } from "../document/workspace.ts";
import { type Liveness, type Owner, parseOwner } from "../locking/owner.ts";

export interface OnceRecord {
  readonly state: "started" | "ended";
  readonly attempt: number;
  readonly owner: Owner;
  readonly startedAt: string;
  readonly commandHash: string;
  readonly exitCode: number | null;
  /** The signal that ended the command, when one did. */
  readonly signal: string | null;
  readonly document: JsonObject;
}

/** What became of the command, as far as its pid file tells. */
export type Trace =
  | { readonly state: "never-began" | "gone" }
  | { readonly state: "running"; readonly pid: number };

export type OnceDecision =
  | { readonly act: "run"; readonly attempt: number }
  | { readonly act: "replay"; readonly record: OnceRecord }
  | { readonly act: "busy"; readonly why: "owner-alive" | "elsewhere" }
  | { readonly act: "busy"; readonly why: "command-running"; readonly pid: number }
  | { readonly act: "unknown" };

export interface OnceWishes {
  readonly retryUnknown?: boolean | undefined;
  /** Run a command again that ended with an exit code other than 0 by itself. */
  readonly retryFailed?: boolean | undefined;
}

/**
 * The rule. A command that ended by itself is replayed. A started one is left alone while its owner or itself lives,
 * runs again only when it provably never began, and is otherwise unknown: never run again unless someone says so.
 */
export function decideOnce(
  record: OnceRecord | "absent" | "unreadable",
  owner: Liveness,
  trace: Trace,
  wishes: OnceWishes,
): OnceDecision {
  if (record === "absent") return { act: "run", attempt: 1 };
  if (record === "unreadable") return wishes.retryUnknown ? { act: "run", attempt: 1 } : { act: "unknown" };
  const again = { act: "run", attempt: record.attempt + 1 } as const;
  if (record.state === "ended") {
    // Ended by a signal: it died in the middle, and nobody knows how far it got.
    if (record.signal !== null) return wishes.retryUnknown ? again : { act: "unknown" };
    if (!wishes.retryFailed || record.exitCode === 0) return { act: "replay", record };
    // It reports a signal's number: something in it did not say itself that it failed.
    return wasKilled(record.exitCode ?? 0) && !wishes.retryUnknown ? { act: "unknown" } : again;
  }
  if (owner === "alive") return { act: "busy", why: "owner-alive" };
  if (owner === "elsewhere") return wishes.retryUnknown ? again : { act: "busy", why: "elsewhere" };
  if (trace.state === "running") return { act: "busy", why: "command-running", pid: trace.pid };
  if (trace.state === "never-began" || wishes.retryUnknown) return again;
  return { act: "unknown" };
}

/** 128 + a signal's number, as shells report it. */
export function wasKilled(exitCode: number): boolean {
  return exitCode > 128 && exitCode <= 128 + 64;
}

export interface OncePaths {
  readonly directory: string;
  readonly record: string;
  pidFile(attempt: number): string;
}

/** Below a directory's own: one folder of records for each flow. */
export const ONCE = "once";

export function oncePaths(place: FlowPlace, idempotencyKey: string, key: string): OncePaths {
  const directory = ownPath(place.directory, ONCE, place.stem);
  // Lengths first, so that no two pairs of texts run together.
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

/** Whether a command of this flow is at work for someone who lives. Records that cannot be read belong to nobody. */
export function hasLiveCommand(place: FlowPlace, lives: (owner: Owner) => boolean): boolean {
  return listRecords(place).some((path) => {
    const record = readRecord(path);
    return typeof record !== "string" && record.state === "started" && lives(record.owner);
  });
}

export function listRecords({ directory, stem }: FlowPlace): string[] {
  const records = ownPath(directory, ONCE, stem);
  let names: string[];
  try {
    names = readdirSync(records);
  } catch {
    return [];
  }
  return names.filter((name) => name.endsWith(".json")).map((name) => join(records, name));
}

const VOID = "void";

/**
 * What the pid file tells, decided for good: when there is none, one is made here, after which that attempt cannot
 * begin any more. Only true within one boot: a power loss may have taken the file with it.
 */
export function settleTrace(pidFile: string, startTimeOf: (pid: number) => string | undefined): Trace {
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
  // Not written yet, or cut: it began, and that is all one can say.
  if (!(pid > 0)) return { state: "gone" };
  const started = text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  const now = startTimeOf(pid);
  if (now === undefined) return { state: "gone" };
  return started === undefined || started === now ? { state: "running", pid } : { state: "gone" };
}
