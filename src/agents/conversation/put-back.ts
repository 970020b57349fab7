// Puts the conversation of a restored cell back to where its agent keeps it, so that a resume continues as of that point.
// Only files of the mission's own session are touched: those of the copy are written atomically, others of the session are
// removed. The safety checkpoint has them; a file that changed since is moved aside instead (INV-3). Every step can be
// repeated. The copy is untrusted: the adapter decides where a name belongs, and no link is followed.
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { agentDirectory } from "../../cell/fence.ts";
import { isInside } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory, removeFile, replaceFile } from "../../platform/durable.ts";
import { messageOf, systemErrorCode } from "../../platform/errors.ts";
import type { Adapter, Place, Position } from "../adapter.ts";
import { readPlace } from "../place.ts";
import { CONVERSATION_DIRECTORY, readSession } from "../session.ts";
import type { ConversationCell, Problem } from "./cell.ts";
import { claimSession } from "./discover.ts";
import { readCopy } from "./position.ts";
import {
  createSessionReader,
  isCredential,
  isReadInPlace,
  openOwn,
  readRange,
  requireEntry,
  requireOwn,
  resolveOwn,
  SourceError,
} from "./source.ts";
import { hasCopy } from "./stage.ts";
import { markParts, readEdges } from "./stage-lines.ts";
import { markDatabase, markFile } from "./stage-whole.ts";
import { listStaged, openStagedTree, type StagedFile, stagedPath } from "./staged.ts";
import { type FileState, readState, writeState } from "./state.ts";

/** A session as session.json names it. */
export interface SessionName {
  readonly adapter: string;
  readonly session: string;
}

export interface PutBack {
  /** The session whose files may be in place now; null when there was none. */
  readonly before: SessionName | null;
  /** Names the files that are moved aside. */
  readonly id: string;
  /** Whether the agent's files were copied into a checkpoint just before. */
  readonly isSaved: boolean;
}

export function currentSession(cell: ConversationCell): SessionName | null {
  const recorded = readSession(cell.cellRoot);
  return recorded === undefined || recorded.session === null
    ? null
    : { adapter: recorded.adapter, session: recorded.session };
}

/** The agent's own files of a session. */
export function listSessionFiles(cell: ConversationCell, name: SessionName | null): string[] {
  const open = openSession(cell, name);
  return open === undefined ? [] : filesNow(cell, open).map(({ path }) => path);
}

/** The agent whose conversation is in a database that other sessions share, so that it can only be read. */
export function sharedConversation(cell: ConversationCell): string | undefined {
  const open = openSession(cell, currentSession(cell));
  if (open === undefined) return undefined;
  const { adapter, place, session } = open;
  const files = adapter.sessionFiles(place, session, createSessionReader(adapter, place));
  return files.some(({ kind }) => kind === "shared") ? adapter.name : undefined;
}

/** Whether the agent's own files lack something that the copy has: one is missing or not a file, or has become shorter. */
export function isIncomplete(cell: ConversationCell): boolean {
  const open = openSession(cell, currentSession(cell));
  return open !== undefined && findLost(cell, open) !== undefined;
}

/** Whether the copy should replace the agent's files, which are at `live`: only if it has more turns or less damage. */
export function isBehind(cell: ConversationCell, live: Position | null): boolean {
  const open = openSession(cell, currentSession(cell));
  if (open === undefined) return false;
  const lost = findLost(cell, open);
  if (lost === "missing") return true;
  if (lost === undefined && live?.damagedLines === 0) return false;
  const copy = open.adapter.transcript.position(readCopy(cell, open.adapter, open.session));
  const isIntact = copy.damagedLines < (live?.damagedLines ?? 0) && copy.turn === live?.turn;
  return copy.turn > (live?.turn ?? 0) || isIntact;
}

function findLost(cell: ConversationCell, open: OpenSession): "missing" | "shorter" | undefined {
  const { adapter, session } = open;
  if (!hasCopy(cell, adapter, session)) return undefined;
  const files = copiedFiles(cell, open).filter(({ path }) => path !== undefined);
  // A link that is not followed is not read, so to the conversation it is missing.
  const sizeOf = ({ path }: CopiedFile) => {
    const real = resolveOwn(open.place, path!);
    const stat = real === undefined ? undefined : lstatSync(real, { throwIfNoEntry: false });
    return stat?.isFile() ? stat.size : undefined;
  };
  if (files.some((file) => sizeOf(file) === undefined)) return "missing";
  const state = readState(cell.machine, cell.cacheDirectory, { adapter: adapter.name, session });
  const isShorter = (file: CopiedFile) => {
    const known = state?.files[file.name];
    // Redaction can make the copy longer than the original.
    return file.kind === "lines" && sizeOf(file)! < (known?.kind === "lines" ? known.offset : file.size);
  };
  return files.some(isShorter) ? "shorter" : undefined;
}

export function putBackConversation(cell: ConversationCell, { before, id, isSaved }: PutBack): Problem[] {
  const problems: Problem[] = [];
  const now = openSession(cell, currentSession(cell));
  const earlier = openSession(cell, before);
  const isOther = now?.session !== earlier?.session || now?.adapter !== earlier?.adapter;
  if (earlier !== undefined && isOther)
    for (const file of filesNow(cell, earlier))
      attempt(problems, earlier, file.name, () =>
        removeOrMove(cell, earlier, file, { id, isSaved }, problems),
      );
  if (now === undefined) return problems;
  const claimant = claimSession(cell, now.adapter, now.session);
  if (claimant !== undefined) {
    const reason = `not put back: session ${now.session} belongs to mission ${claimant}`;
    return [...problems, { path: CONVERSATION_DIRECTORY, kind: "degraded", reason }];
  }
  const states: Record<string, FileState> = {};
  const wanted = hasCopy(cell, now.adapter, now.session) ? copiedFiles(cell, now) : [];
  for (const file of wanted)
    attempt(problems, now, file.name, () => {
      states[file.name] = putFileBack(cell, now, file, { id, isSaved }, problems);
      crashPoint("agents.conversation.file-put-back");
    });
  const names = new Set(wanted.map(({ name }) => name));
  for (const file of filesNow(cell, now))
    if (!names.has(file.name))
      attempt(problems, now, file.name, () => removeOrMove(cell, now, file, { id, isSaved }, problems));
  crashPoint("agents.conversation.put-back");
  const { adapter, session } = now;
  writeState(cell.machine, cell.cacheDirectory, {
    adapter: adapter.name,
    session,
    files: states,
    followed: null,
  });
  return problems;
}

interface OpenSession {
  readonly adapter: Adapter;
  readonly session: string;
  readonly place: Place;
}

function openSession(cell: ConversationCell, name: SessionName | null): OpenSession | undefined {
  const adapter = name === null ? undefined : cell.findAdapter(name.adapter);
  const place = readPlace(agentDirectory(cell.config, cell.mission));
  if (adapter === undefined || place === undefined || !adapter.isSessionId(name!.session)) return undefined;
  return { adapter, session: name!.session, place };
}

interface OwnFile {
  readonly name: string;
  readonly path: string;
}

function filesNow(cell: ConversationCell, { adapter, session, place }: OpenSession): OwnFile[] {
  return adapter
    .sessionFiles(place, session, createSessionReader(adapter, place))
    .filter((file) => !isReadInPlace(cell, file) && !isCredential(adapter, place, file.path));
}

interface CopiedFile extends StagedFile {
  /** Where it belongs; undefined for a name that the adapter never uses. */
  readonly path: string | undefined;
}

function copiedFiles(cell: ConversationCell, { adapter, session, place }: OpenSession): CopiedFile[] {
  const reader = createSessionReader(adapter, place);
  return listStaged(openStagedTree(cell.cellRoot), adapter.name).map((file) => {
    const path = adapter.pathOf(place, session, file.name, reader);
    const isRefused = path === null || isCredential(adapter, place, path) || isInside(cell.cellRoot, path);
    return { ...file, path: isRefused ? undefined : path };
  });
}

/** A full or failing disk stops the restore, which the next command continues; anything else is reported as a flaw. */
function attempt(problems: Problem[], { adapter }: OpenSession, name: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOSPC" || code === "EIO" || code === "EDQUOT") throw error;
    if (code === undefined && !(error instanceof SourceError)) throw error;
    const reason = `not put back: ${messageOf(error)}`;
    problems.push({ path: join(CONVERSATION_DIRECTORY, adapter.name, name), kind: "degraded", reason });
  }
}

type Saved = Pick<PutBack, "id" | "isSaved">;

function putFileBack(
  cell: ConversationCell,
  open: OpenSession,
  file: CopiedFile,
  saved: Saved,
  problems: Problem[],
): FileState {
  const { disk } = cell.machine;
  if (file.path === undefined) throw new SourceError("the agent does not use a file of this name");
  const path = requireEntry(open.place, file.path);
  const bytes = file.read();
  const stat = lstatSync(path, { throwIfNoEntry: false });
  const isSame = stat?.isFile() && stat.size === bytes.length && readFileSync(path).equals(bytes);
  if (!isSame) {
    const isSaved = stat?.isFile() && isInCheckpoint(cell, open, { name: file.name, path: file.path }, saved);
    if (stat !== undefined && !isSaved)
      moveAside(cell, { name: join(open.adapter.name, file.name), path }, saved.id, problems);
    makeDirectory(disk, dirname(path));
    requireOwn(open.place, file.path);
    // Transactions of the newer database must not be applied to the older one.
    if (file.kind === "sqlite")
      for (const suffix of ["-wal", "-shm", "-journal"]) removeFile(disk, path + suffix);
    replaceFile(disk, path, bytes, { mode: stat?.isFile() ? stat.mode & 0o777 : 0o600 });
  }
  return stateOf(cell, open, file, path);
}

/** As if it had just been copied: the next checkpoint reads what is appended from now on. */
function stateOf(
  cell: ConversationCell,
  { adapter, place }: OpenSession,
  file: CopiedFile,
  path: string,
): FileState {
  const copy = join(cell.cellRoot, CONVERSATION_DIRECTORY, adapter.name, stagedPath(file.name, file.kind));
  if (file.kind === "whole") return { kind: "whole", source: markFile(path), copy: markFile(copy) };
  if (file.kind === "sqlite") return { kind: "sqlite", source: markDatabase(path), copy: markFile(copy) };
  using source = openOwn(place, file.path!);
  if (source === undefined) throw new SourceError("it disappeared");
  const { dev, ino, size } = source.stat;
  return { kind: "lines", dev, ino, offset: size, edges: readEdges(source.fd, size), parts: markParts(copy) };
}

function removeOrMove(
  cell: ConversationCell,
  open: OpenSession,
  file: OwnFile,
  saved: Saved,
  problems: Problem[],
): void {
  const path = requireEntry(open.place, file.path);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (stat.isFile() && isInCheckpoint(cell, open, file, saved)) removeFile(cell.machine.disk, path);
  else moveAside(cell, { name: join(open.adapter.name, file.name), path }, saved.id, problems);
  crashPoint("agents.conversation.file-removed");
}

/** Whether the copy in the safety checkpoint is what the file holds; a cut last line is not part of the conversation. */
function isInCheckpoint(
  cell: ConversationCell,
  open: OpenSession,
  { name, path }: OwnFile,
  { isSaved }: Saved,
): boolean {
  const { adapter, session } = open;
  const state = readState(cell.machine, cell.cacheDirectory, { adapter: adapter.name, session })?.files[name];
  if (!isSaved || state === undefined) return false;
  if (state.kind !== "lines")
    return state.source === (state.kind === "whole" ? markFile : markDatabase)(requireOwn(open.place, path));
  using source = openOwn(open.place, path);
  if (source === undefined || source.stat.dev !== state.dev || source.stat.ino !== state.ino) return false;
  if (source.stat.size < state.offset || readEdges(source.fd, state.offset) !== state.edges) return false;
  return !readRange(source.fd, state.offset, source.stat.size).includes("\n");
}

function moveAside(
  { machine }: ConversationCell,
  { name, path }: OwnFile,
  id: string,
  problems: Problem[],
): void {
  let aside = `${path}.lazarus-aside-${id}`;
  for (let n = 2; existsSync(aside); n += 1) aside = `${path}.lazarus-aside-${id}-${n}`;
  machine.disk.rename(path, aside);
  machine.disk.fsyncDirectory(dirname(path));
  const reason = `the agent's file is in no checkpoint and was moved to ${aside}`;
  problems.push({ path: join(CONVERSATION_DIRECTORY, name), kind: "degraded", reason });
}
