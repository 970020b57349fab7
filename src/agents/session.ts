// Where a mission's conversation is kept, and which session it is. `<cell>/conversation/session.json` is captured and restored
// with the files; the text of the session's files is in `<cell>/conversation/<adapter>/`. Reports of hooks are outside the
// cell and never restored.
import { join } from "node:path";

/** The directory in the cell that holds a copy of the conversation. */
export const CONVERSATION_DIRECTORY = "conversation";

/** Stored as session.json. An agent can write to it: nothing in it is used as a path or an option unchecked (INV-11). */
export interface Session {
  readonly format: 1;
  readonly adapter: string;
  /** Null while the agent has not been heard of: no transcript, no hook. */
  readonly session: string | null;
  /** Epoch of the life that began the session. */
  readonly since_epoch: number;
  /** Sessions created before this time are somebody else's. */
  readonly since_ms: number;
}

export function sessionFile(cellRoot: string): string {
  return join(cellRoot, CONVERSATION_DIRECTORY, "session.json");
}

/** What hooks reported, one `HookLine` per line; `directory` is that of the agent in run_dir (agent-paths.ts). */
export function hooksFile(directory: string): string {
  return join(directory, "hooks.jsonl");
}
