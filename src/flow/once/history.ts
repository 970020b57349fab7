// At-most-once commands in the effect history of the mission (INV-5). The record in the workspace is part of the cell and
// is restored with it; the history is not, and takes precedence when the two disagree. Outside a cell there is no history, and the
// record alone decides.
import { isRestoredSince, type KnownEffect } from "../../effects/fold.ts";
import { type EffectHistory, openHistoryAt } from "../../effects/history.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import { formatIso } from "../document/document.ts";
import type { Workspace } from "../document/workspace.ts";
import { isSameProcess, parseOwner } from "../locking/owner.ts";
import { shortenCaptured } from "./output.ts";
import type { OnceRecord } from "./record.ts";
import type { CommandEnd } from "./run-command.ts";

/** One command in the history of its mission. */
export interface OnceHistory {
  readonly history: EffectHistory;
  readonly id: string;
}

/** Undefined outside a cell. */
export function openOnceHistory(
  { machine, missionsRoot }: Workspace,
  recordFile: string,
): OnceHistory | undefined {
  const found = openHistoryAt(machine, recordFile, missionsRoot);
  return found && { history: found.history, id: found.inside };
}

type Found = OnceRecord | "absent" | "unreadable";

/** What is known about a command. */
export interface OnceKnowledge {
  readonly record: Found;
  readonly fromHistory: boolean;
  /** Whether the files next to the record tell how far the command got. A restore may have removed them. */
  readonly traceable: boolean;
  /** The highest attempt that was ever started. */
  readonly attempts: number;
}

export function consultHistory(found: Found, once: OnceHistory | undefined): OnceKnowledge {
  const attempts = typeof found === "string" ? 0 : found.attempt;
  if (once === undefined) return { record: found, fromHistory: false, traceable: true, attempts };
  const { history } = once;
  const known = history.find("once", once.id);
  if (known === undefined) {
    return { record: found, fromHistory: false, traceable: history.read().restores.length === 0, attempts };
  }
  const record = chooseRecord(found, known, () => history.resultOf(known));
  return {
    record,
    fromHistory: record !== found,
    traceable: record === found && !isRestoredSince(history.read(), known.startedAt),
    attempts: Math.max(attempts, known.attempt),
  };
}

/** The record, or what the history says instead. `result` reads the result from the history. */
export function chooseRecord(found: Found, known: KnownEffect, result: () => unknown): Found {
  if (typeof found !== "string") {
    // "started" is in the record first: the process died before it reached the history, and before the command.
    if (found.attempt > known.attempt) return found;
    if (found.attempt === known.attempt && isSameStart(found, known)) {
      if (known.state === "started") return found;
      // The same end, with more of its output.
      if (found.state === "ended" && isSameEnd(found, result())) return found;
    }
  }
  if (known.state === "withdrawn") return "absent";
  return recordOf(known, result()) ?? "unreadable";
}

function isSameStart(found: OnceRecord, known: KnownEffect): boolean {
  const owner = parseOwner(known.owner ?? {});
  return owner !== undefined && isSameProcess(found.owner, owner) && found.commandHash === known.digest;
}

function isSameEnd(found: OnceRecord, result: unknown): boolean {
  return isJsonObject(result) && result.exitCode === found.exitCode;
}

function recordOf(known: KnownEffect, result: unknown): OnceRecord | undefined {
  const owner = parseOwner(known.owner ?? {});
  const end = isJsonObject(result) ? result : {};
  if (owner === undefined || (known.state !== "started" && typeof end.exitCode !== "number"))
    return undefined;
  return {
    state: known.state === "started" ? "started" : "ended",
    attempt: known.attempt,
    owner,
    startedAt: formatIso(known.startedMs),
    commandHash: known.digest,
    exitCode: typeof end.exitCode === "number" ? end.exitCode : null,
    signal: typeof end.signal === "string" ? end.signal : null,
    document: end,
  };
}

/** Bytes of each stream in the history. The record in the workspace has more. */
const OUTPUT_BYTES = 16 * 1024;

/** Appends how a command ended. The output is already without secrets. */
export function recordEnd(
  { history, id }: OnceHistory,
  attempt: number,
  { exitCode, signal, stdout, stderr }: Omit<CommandEnd, "began">,
): void {
  history.append({
    source: "once",
    id,
    attempt,
    state: signal !== null ? "unknown" : exitCode === 0 ? "done" : "failed",
    result: {
      exitCode,
      signal,
      stdout: shortenCaptured(stdout, OUTPUT_BYTES),
      stderr: shortenCaptured(stderr, OUTPUT_BYTES),
    },
  });
}
