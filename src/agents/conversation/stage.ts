// Copies the conversation of a mission's agent into its cell, before the cell is surveyed: a transcript describes past
// work, so a copy that is older than the files never describes work that they lack. A mission without an adapter costs one
// lstat. Nothing here fails a checkpoint: what cannot be copied is reported as a flaw (INV-6). The caller holds the vault's
// lock.

import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { agentDirectory } from "../../cell/fence.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { messageOf } from "../../platform/errors.ts";
import { isJsonObject, readJsonFile } from "../../platform/json-file.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { Adapter, Followed, Place, SessionFile, TranscriptText } from "../adapter.ts";
import { readPlace } from "../place.ts";
import { CONVERSATION_DIRECTORY, readSession, type Session, sessionFile, writeSession } from "../session.ts";
import type { ConversationCell, ConversationPosition, Problem } from "./cell.ts";
import { claimSession, discoverSession } from "./discover.ts";
import { readCopy, readRows, toStored } from "./position.ts";
import { makeDirectories, putFile } from "./put-file.ts";
import {
  createSessionReader,
  isCredential,
  isReadInPlace,
  type OwnReader,
  openOwn,
  SourceError,
} from "./source.ts";
import { stageLines } from "./stage-lines.ts";
import { type CopyDatabase, stageDatabase, stageWhole } from "./stage-whole.ts";
import { isStageable, listStaged, openStagedTree, stagedPath } from "./staged.ts";
import { type FileState, readState, type StageState, writeState } from "./state.ts";

export interface StageResult {
  /** Undefined when there is no conversation yet. */
  readonly position: ConversationPosition | undefined;
  readonly problems: readonly Problem[];
}

export async function stageConversation(
  cell: ConversationCell,
  copyDatabase: CopyDatabase,
): Promise<StageResult> {
  if (lstatSync(sessionFile(cell.cellRoot), { throwIfNoEntry: false }) === undefined)
    return { position: undefined, problems: [] };
  const problems: Problem[] = [];
  const report = (path: string, kind: Problem["kind"], reason: string) =>
    problems.push({ path: join(CONVERSATION_DIRECTORY, path), kind, reason });
  let position: ConversationPosition | undefined;
  try {
    position = await stageSession(cell, copyDatabase, report);
  } catch (error) {
    report("", "degraded", `the conversation was not copied: ${messageOf(error)}`);
  }
  return { position, problems };
}

type Report = (path: string, kind: Problem["kind"], reason: string) => void;

async function stageSession(
  cell: ConversationCell,
  copyDatabase: CopyDatabase,
  report: Report,
): Promise<ConversationPosition | undefined> {
  const recorded = readSession(cell.cellRoot);
  if (recorded === undefined) throw new SourceError("session.json is damaged");
  const adapter = cell.findAdapter(recorded.adapter);
  if (adapter === undefined) throw new SourceError(`there is no adapter ${JSON.stringify(recorded.adapter)}`);
  const place = readPlace(agentDirectory(cell.config, cell.mission));
  // Never started on this machine (an import, a fork): there is only the copy.
  if (place === undefined) return readPosition(cell, adapter, recorded);
  const reader = createSessionReader(adapter, place);
  const session = discoverSession(cell, adapter, place, recorded, reader);
  if (session === null) {
    reportRefused(adapter, reader, report);
    return undefined;
  }
  const state = readState(cell.machine, cell.cacheDirectory, { adapter: adapter.name, session });
  const claimant = state === undefined ? claimSession(cell, adapter, session) : undefined;
  if (claimant !== undefined) throw new SourceError(`session ${session} belongs to mission ${claimant}`);
  if (session !== recorded.session) {
    writeSession(cell.machine, cell.cellRoot, { ...recorded, session });
    crashPoint("agents.conversation.session-written");
  }
  const files = adapter
    .sessionFiles(place, session, reader)
    .filter(({ path }) => !isCredential(adapter, place, path));
  reportRefused(adapter, reader, report);
  const isGone = files.length === 0 && hasCopy(cell, adapter, session);
  if (isGone) {
    report(adapter.name, "degraded", "the agent's files of this session are gone; the last copy is kept");
    return readPosition(cell, adapter, { ...recorded, session });
  }
  const staging = { cell, adapter, place, session, state, copyDatabase, report };
  return await stageFiles(staging, files);
}

/** What hides a conversation, or a part of it. */
function reportRefused(adapter: Adapter, { refused }: OwnReader, report: Report): void {
  for (const [path, { reason }] of refused) report(adapter.name, "skipped", `${path}: ${reason}`);
}

interface Staging {
  readonly cell: ConversationCell;
  readonly adapter: Adapter;
  readonly place: Place;
  readonly session: string;
  readonly state: StageState | undefined;
  readonly copyDatabase: CopyDatabase;
  readonly report: Report;
}

/** `appended` is undefined when the whole file has to be read again. */
interface Staged {
  readonly name: string;
  readonly state: FileState | undefined;
  readonly appended: Buffer | undefined;
}

async function stageFiles(
  staging: Staging,
  files: readonly SessionFile[],
): Promise<ConversationPosition | undefined> {
  const { cell, adapter, session, state, report } = staging;
  const outside = files.filter((file) => !isReadInPlace(cell, file));
  const copied = hasCopy(cell, adapter, session)
    ? listStaged(openStagedTree(cell.cellRoot), adapter.name)
    : [];
  const root = markOwner(staging, outside.length > 0);
  const staged: Staged[] = [];
  for (const file of outside) {
    try {
      const one = isStageable(file.name) ? await stageFile(staging, root, file) : undefined;
      if (one === undefined && !isStageable(file.name))
        throw new SourceError("its name is not allowed in a checkpoint");
      if (one !== undefined) staged.push(one);
    } catch (error) {
      const hasOlder = copied.some(({ name }) => name === file.name);
      const reason = `${file.path}: ${messageOf(error)}${hasOlder ? "; an older copy is kept" : ""}`;
      report(join(adapter.name, file.name), hasOlder ? "degraded" : "skipped", reason);
      if (hasOlder) staged.push({ name: file.name, state: undefined, appended: undefined });
    }
  }
  removeOthers(cell, adapter, new Set(staged.map(({ name }) => name)), outside);
  const kept = Object.fromEntries(
    staged.flatMap(({ name, state: each }) => (each === undefined ? [] : [[name, each]])),
  );
  const followed = follow(staging, staged, files);
  if (JSON.stringify([kept, followed]) !== JSON.stringify([state?.files, state?.followed]))
    writeState(cell.machine, cell.cacheDirectory, { adapter: adapter.name, session, files: kept, followed });
  if (followed === null) return undefined;
  const { damagedLines } = followed.position;
  if (damagedLines > 0) report(adapter.name, "degraded", `damaged lines in the transcript: ${damagedLines}`);
  return toStored(adapter, session, followed.position);
}

async function stageFile(staging: Staging, root: string, file: SessionFile): Promise<Staged | undefined> {
  const { cell, adapter, place, copyDatabase } = staging;
  const { name, kind } = file;
  const known = staging.state?.files[name];
  const { disk } = cell.machine;
  const path = stagedPath(name, kind);
  const directory = kind === "lines" ? path : path.split("/").slice(0, -1).join("/");
  if (directory !== "") makeDirectories(disk, root, directory);
  if (kind === "sqlite") {
    const state = await stageDatabase({ place, file, copy: join(root, path), copyDatabase, disk }, known);
    return state && { name, state, appended: undefined };
  }
  using source = openOwn(place, file.path);
  if (source === undefined) return undefined;
  if (kind === "whole") {
    const state = await stageWhole(disk, source, join(root, path), known);
    const isRead = state === known || adapter.transcript.follow !== undefined;
    return { name, state, appended: isRead ? Buffer.alloc(0) : undefined };
  }
  const lines = await stageLines(disk, source, join(root, path), known?.kind === "lines" ? known : undefined);
  if (lines === undefined) return undefined;
  const isNew = known === undefined && staging.state !== undefined;
  return {
    name,
    state: lines.state,
    appended: lines.appended ?? (isNew ? readStaged(cell, adapter, name) : undefined),
  };
}

function readStaged(cell: ConversationCell, adapter: Adapter, name: string): Buffer | undefined {
  return listStaged(openStagedTree(cell.cellRoot), adapter.name)
    .find((file) => file.name === name)
    ?.read();
}

/** Records whose copies these are, before the first one is written. */
function markOwner({ cell, adapter, session }: Staging, hasFiles: boolean): string {
  const { disk } = cell.machine;
  const top = join(cell.cellRoot, CONVERSATION_DIRECTORY);
  if (!hasFiles) return join(top, adapter.name);
  const root = makeDirectories(disk, cell.cellRoot, `${CONVERSATION_DIRECTORY}/${adapter.name}`);
  if (!hasCopy(cell, adapter, session)) {
    putFile(disk, ownerFile(cell.cellRoot), ownerText(adapter.name, session));
    crashPoint("agents.conversation.owner-written");
  }
  return root;
}

export function ownerFile(cellRoot: string): string {
  return join(cellRoot, CONVERSATION_DIRECTORY, "copy.json");
}

export function ownerText(adapter: string, session: string): Buffer {
  return Buffer.from(`${JSON.stringify({ format: 1, adapter, session })}\n`);
}

/** Whether the cell has copies of this session's files. */
export function hasCopy(
  { cellRoot }: Pick<ConversationCell, "cellRoot">,
  adapter: Adapter,
  session: string,
): boolean {
  const reading = readJsonFile(ownerFile(cellRoot));
  return (
    reading.ok &&
    isJsonObject(reading.value) &&
    reading.value.adapter === adapter.name &&
    reading.value.session === session
  );
}

/** Copies of files that the session no longer has, or of another session. */
function removeOthers(
  { cellRoot }: ConversationCell,
  adapter: Adapter,
  names: ReadonlySet<string>,
  files: readonly SessionFile[],
): void {
  const top = join(cellRoot, CONVERSATION_DIRECTORY);
  const kinds = new Map(files.map(({ name, kind }) => [name, kind]));
  for (const { name, kind } of listStaged(openStagedTree(cellRoot), adapter.name))
    if (!names.has(name) || kinds.get(name) !== kind)
      removeTree(join(top, adapter.name, stagedPath(name, kind)));
  for (const entry of readdirSync(top, { withFileTypes: true }))
    if (entry.isDirectory() && entry.name !== adapter.name) removeTree(join(top, entry.name));
}

/** The position after what was staged; null when there is nothing to read. */
function follow(
  { cell, adapter, session, state }: Staging,
  staged: readonly Staged[],
  files: readonly SessionFile[],
): Followed | null {
  const { transcript } = adapter;
  const inPlace = files.filter((file) => isReadInPlace(cell, file));
  const before = state?.followed ?? null;
  const hadOthers = Object.keys(state?.files ?? {}).some((name) =>
    staged.every((file) => file.name !== name),
  );
  const canFollow = before !== null && !hadOthers && inPlace.length === 0;
  if (canFollow && staged.every(({ appended }) => appended?.length === 0)) return before;
  const byName = [...staged].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (
    transcript.follow !== undefined &&
    canFollow &&
    staged.every(({ appended }) => appended !== undefined)
  ) {
    const appended = byName.map(({ name, appended: bytes }) => ({ name, text: bytes!.toString("utf8") }));
    return transcript.follow(before, appended);
  }
  const texts = [...readCopy(cell, adapter, session), ...readInPlace(adapter, session, inPlace)];
  if (texts.length === 0) return null;
  return transcript.follow?.(null, texts) ?? { position: transcript.position(texts), memory: null };
}

function readInPlace(adapter: Adapter, session: string, files: readonly SessionFile[]): TranscriptText[] {
  return files.map(({ name, path, kind }) => ({
    name,
    text:
      kind === "sqlite" || kind === "shared" ? readRows(adapter, session, path) : readFileSync(path, "utf8"),
  }));
}

/** The position of the copy. */
function readPosition(
  cell: ConversationCell,
  adapter: Adapter,
  { session }: Session,
): ConversationPosition | undefined {
  if (session === null || !adapter.isSessionId(session)) return undefined;
  const texts = readCopy(cell, adapter, session);
  return texts.length === 0 ? undefined : toStored(adapter, session, adapter.transcript.position(texts));
}
