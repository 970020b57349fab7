// The position of a conversation, read from its copy: the text of the files in the order of their names, as every reader of a
// checkpoint sees it.
import { join } from "node:path";
import { readDatabase } from "../../platform/sqlite.ts";
import type { Adapter, Position, TranscriptText } from "../adapter.ts";
import { CONVERSATION_DIRECTORY } from "../session.ts";
import type { ConversationPosition } from "./cell.ts";
import { listStaged, openStagedTree, type StagedFile, stagedPath } from "./staged.ts";

/** `locate` is where a database can be opened. */
export function readTexts(
  adapter: Adapter,
  session: string,
  files: readonly StagedFile[],
  locate: (file: StagedFile) => string,
): TranscriptText[] {
  return files.map((file) => ({
    name: file.name,
    text: file.kind === "sqlite" ? readRows(adapter, session, locate(file)) : file.read().toString("utf8"),
  }));
}

/** Reads the position from the copy in a cell. */
export function readCopy(
  { cellRoot }: { readonly cellRoot: string },
  adapter: Adapter,
  session: string,
): TranscriptText[] {
  const top = join(cellRoot, CONVERSATION_DIRECTORY, adapter.name);
  const files = listStaged(openStagedTree(cellRoot), adapter.name);
  return readTexts(adapter, session, files, ({ name, kind }) => join(top, stagedPath(name, kind)));
}

export function readRows({ transcript }: Adapter, session: string, file: string): string {
  const { query } = transcript;
  if (query === undefined) return "";
  const rows = readDatabase(file, (database) => database.prepare(query).all(session)) ?? [];
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

export function describePosition({ adapter, session, turn, last }: ConversationPosition): string {
  const name = `${adapter} ${session.length > 12 ? `${session.slice(0, 8)}…` : session}`;
  return `${turnText({ turn, last })} (${name})`;
}

/** "turn 14, after Bash: npm test" */
export function turnText({ turn, last }: Pick<ConversationPosition, "turn" | "last">): string {
  if (last === null) return `turn ${turn}`;
  return `turn ${turn}, after ${last.tool}${last.summary === "" ? "" : `: ${last.summary}`}`;
}

export function toStored(adapter: Adapter, session: string, { turn, last }: Position): ConversationPosition {
  const call = last === null ? null : { tool: last.tool, summary: last.summary.slice(0, 200) };
  return { adapter: adapter.name, session, turn, last: call };
}
