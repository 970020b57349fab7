// Reads the current conversation from the agent's own files; from the copy in the cell where they are gone, or where the agent
// was never started. Writes nothing.
import { lstatSync, readFileSync } from "node:fs";
import { agentDirectory } from "../../cell/fence.ts";
import { isInside } from "../../cell/mission-id.ts";
import type { Adapter, Place, SessionFile, TranscriptText } from "../adapter.ts";
import { readPlace } from "../place.ts";
import { readSession } from "../session.ts";
import type { ConversationCell } from "./cell.ts";
import { discoverSession } from "./discover.ts";
import { readCopy, readRows } from "./position.ts";
import { redactLines } from "./redact.ts";
import { createSessionReader, isCredential, openOwn, readRange, resolveOwn } from "./source.ts";

/** A conversation to read. */
export interface Transcript {
  readonly adapter: Adapter;
  readonly session: string;
  /** With secrets redacted. */
  readonly texts: readonly TranscriptText[];
}

/** Undefined when there is none. */
export async function readTranscriptNow(cell: ConversationCell): Promise<Transcript | undefined> {
  const recorded = readSession(cell.cellRoot);
  const adapter = recorded === undefined ? undefined : cell.findAdapter(recorded.adapter);
  if (recorded === undefined || adapter === undefined) return undefined;
  const place = readPlace(agentDirectory(cell.config, cell.mission));
  const reader = place && createSessionReader(adapter, place);
  const session = place ? discoverSession(cell, adapter, place, recorded, reader!) : recorded.session;
  if (session === null || !adapter.isSessionId(session)) return undefined;
  const files = place ? adapter.sessionFiles(place, session, reader!) : [];
  const own = files.filter(({ path }) => place !== undefined && !isCredential(adapter, place, path));
  const texts =
    own.length > 0 ? await readOwn(cell, adapter, place!, session, own) : readCopy(cell, adapter, session);
  return texts.length === 0 ? undefined : { adapter, session, texts };
}

async function readOwn(
  cell: ConversationCell,
  adapter: Adapter,
  place: Place,
  session: string,
  files: readonly SessionFile[],
): Promise<TranscriptText[]> {
  const texts: TranscriptText[] = [];
  for (const file of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const bytes = readFile(cell, adapter, place, session, file);
    if (bytes !== undefined)
      texts.push({ name: file.name, text: (await redactLines(bytes)).bytes.toString("utf8") });
  }
  return texts;
}

function readFile(
  cell: ConversationCell,
  adapter: Adapter,
  place: Place,
  session: string,
  { path, kind }: SessionFile,
): Buffer | undefined {
  try {
    if (kind === "sqlite" || kind === "shared") {
      const real = isInside(cell.cellRoot, path) ? path : resolveOwn(place, path);
      return real === undefined ? undefined : Buffer.from(readRows(adapter, session, real));
    }
    if (isInside(cell.cellRoot, path)) return lstatSync(path).isFile() ? readFileSync(path) : undefined;
    using source = openOwn(place, path);
    if (source === undefined) return undefined;
    const bytes = readRange(source.fd, 0, source.stat.size);
    return kind === "lines" ? bytes.subarray(0, bytes.lastIndexOf("\n") + 1) : bytes;
  } catch {
    return undefined;
  }
}
