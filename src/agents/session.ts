// Where a mission's conversation is kept, and which session it is. `<cell>/conversation/session.json` is captured and restored
// with the files; the text of the session's files is in `<cell>/conversation/<adapter>/`. Reports of hooks are outside the
// cell and never restored.
import { dirname, join } from "node:path";
import { refuseOutside } from "../cell/mission-id.ts";
import { makeDirectory } from "../platform/durable.ts";
import { readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";

/** The directory in the cell that holds a copy of the conversation. */
export const CONVERSATION_DIRECTORY = "conversation";

/** Stored as session.json. An agent can write to it: nothing in it is used as a path or an option unchecked (INV-11). */
export interface Session {
  readonly format: 1;
  readonly adapter: string;
  /** Null until a hook or a transcript names it. */
  readonly session: string | null;
  /** Epoch of the life that began the session. */
  readonly since_epoch: number;
  /** Sessions created before this time are not this mission's. */
  readonly since_ms: number;
}

export function sessionFile(cellRoot: string): string {
  return join(cellRoot, CONVERSATION_DIRECTORY, "session.json");
}

/** Undefined when there is none, or none that can be read. */
export function readSession(cellRoot: string): Session | undefined {
  const reading = readJsonFile(sessionFile(cellRoot));
  return reading.ok ? parseSession(reading.value) : undefined;
}

export function parseSession(value: Readonly<Record<string, unknown>>): Session | undefined {
  const { format, adapter, session, since_epoch: epoch, since_ms: sinceMs } = value;
  const isValid =
    format === 1 &&
    typeof adapter === "string" &&
    (session === null || typeof session === "string") &&
    Number.isSafeInteger(epoch) &&
    Number.isFinite(sinceMs);
  return isValid ? (value as unknown as Session) : undefined;
}

/** Durable. The agent may have replaced the directory by a link: nothing is written outside the cell. */
export function writeSession(machine: Pick<Machine, "disk">, cellRoot: string, session: Session): void {
  const file = sessionFile(cellRoot);
  makeDirectory(machine.disk, dirname(file));
  refuseOutside(cellRoot, dirname(file));
  writeJsonFile(machine.disk, file, session);
}

/** What hooks reported, one `HookLine` per line; `directory` is that of the agent in run_dir (agent-paths.ts). */
export function hooksFile(directory: string): string {
  return join(directory, "hooks.jsonl");
}

/** The note of a revival for the agent's SessionStart hook, or for our plugin, where it is not the prompt. */
export function resumeNoteFile(directory: string): string {
  return join(directory, "resume-note.md");
}

/** A note that our plugin could not send: the user has to continue. */
export function unsentNoteFile(directory: string): string {
  return join(directory, "resume-note-unsent.md");
}
