// The journal of a restore in place (INV-3). It is written durably after everything was staged and verified, and removed
// when the restore is complete: a journal that exists must be rolled forward. Two lines of JSON: a header with the digest
// of the second line, which holds the plan.
import { createHash } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import type { SessionName } from "../../agents/conversation/put-back.ts";
import { removeFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Flaw } from "../model/entry.ts";
import type { RestorePlan } from "./plan.ts";
import type { Staging } from "./staging-place.ts";

export interface Journal {
  readonly mission: string;
  readonly cellRoot: string;
  /** Ids of the restored checkpoint and of the safety checkpoint. */
  readonly target: string;
  readonly safety: string;
  /** When the safety checkpoint began: later writes are in no checkpoint. */
  readonly safetyMs: number;
  /** The position of the restored checkpoint in the effect history; null when only some paths are restored. */
  readonly effects?: number | null;
  /** The paths that the restore is limited to; absent for the whole cell. */
  readonly paths?: readonly string[];
  /** Where the steps were staged; absent in journals of early versions. */
  readonly staging?: Staging;
  /** Set when the conversation was left alone. */
  readonly part?: "files";
  /** Set when the conversation is put back: the session whose files are in place. */
  readonly conversation?: { readonly before: SessionName | null };
  /** Paths that could not be staged exactly. */
  readonly flaws: readonly Flaw[];
  readonly plan: RestorePlan;
}

export type JournalReading =
  | { readonly state: "absent" }
  | { readonly state: "found"; readonly journal: Journal }
  | { readonly state: "damaged"; readonly why: string };

const FORMAT = 1;

export function encodeJournal(journal: Journal): string {
  const { plan, ...head } = journal;
  const body = JSON.stringify(plan);
  return `${JSON.stringify({ "lazarus-restore": FORMAT, ...head, sha256: digest(body) })}\n${body}\n`;
}

export function decodeJournal(text: string): JournalReading {
  const damaged = (why: string): JournalReading => ({ state: "damaged", why });
  const [first = "", body = "", rest, ...more] = text.split("\n");
  let head: Record<string, unknown>;
  try {
    head = JSON.parse(first);
  } catch {
    return damaged("its header is not JSON");
  }
  if (head?.["lazarus-restore"] !== FORMAT)
    return damaged(`its format is ${String(head?.["lazarus-restore"])}`);
  if (rest !== "" || more.length > 0) return damaged("it is truncated or has trailing data");
  if (digest(body) !== head.sha256) return damaged("its digest does not match");
  const { "lazarus-restore": _, sha256: __, ...known } = head;
  return {
    state: "found",
    journal: { ...(known as unknown as Omit<Journal, "plan">), plan: JSON.parse(body) },
  };
}

export function writeJournal(machine: Machine, file: string, journal: Journal): void {
  try {
    replaceFile(machine.disk, file, encodeJournal(journal));
  } catch (error) {
    throw asLazarusError(error, `writing the journal ${file}; the cell was not touched`, file);
  }
}

export function readJournal(file: string): JournalReading {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return { state: "absent" };
    throw asLazarusError(error, `reading the journal ${file}`, file);
  }
  return decodeJournal(text);
}

export function clearJournal(machine: Machine, file: string): void {
  try {
    removeFile(machine.disk, file);
  } catch (error) {
    throw asLazarusError(error, `removing the journal ${file}`, file);
  }
}

/** A damaged journal must not block every command; it is kept for inspection. */
export function setAsideJournal(file: string): string {
  const aside = `${file}.damaged`;
  renameSync(file, aside);
  return aside;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
