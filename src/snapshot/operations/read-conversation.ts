// Reads an agent's conversation, the current one or that of a checkpoint. Writes nothing but a copy of a database, which is
// removed.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Adapter, TranscriptEntry } from "../../agents/adapter.ts";
import type { ConversationPosition } from "../../agents/conversation/cell.ts";
import { describePosition, readTexts, toStored } from "../../agents/conversation/position.ts";
import { readTranscriptNow, type Transcript } from "../../agents/conversation/read-now.ts";
import {
  listStaged,
  openStagedTree,
  type StagedFile,
  type StagedTree,
} from "../../agents/conversation/staged.ts";
import { CONVERSATION_DIRECTORY, parseSession } from "../../agents/session.ts";
import { LazarusError, quietly } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import type { MissionContext } from "../mission-context.ts";
import { type Contents, openContents } from "../vault/contents.ts";
import { type Checkpoint, readCheckpoint } from "../vault/manifest.ts";
import { findTarget } from "./restore-target.ts";

/** A conversation, and where it was read. */
export interface Conversation {
  /** Id of the checkpoint; null for the current state. */
  readonly checkpoint: string | null;
  readonly position: ConversationPosition;
  readonly entries: readonly TranscriptEntry[];
}

/** `at`: id, prefix of an id, `latest`, or a time; default: now. */
export async function readConversation(context: MissionContext, at?: string): Promise<Conversation> {
  if (at === undefined) {
    const now = await readTranscriptNow(context);
    if (now !== undefined) return toConversation(null, now);
    throw noConversation(context, `${context.mission} has no conversation`);
  }
  const ref = findTarget(context, at);
  const checkpoint = readCheckpoint(context.vault, ref);
  const found = readTranscriptAt(context, checkpoint);
  if (found !== undefined) return toConversation(ref.id, found);
  const { conversation } = checkpoint.metadata;
  if (conversation !== undefined && context.findAdapter(conversation.adapter)?.positionOnly)
    throw new LazarusError(
      "NOT_FOUND",
      `checkpoint ${ref.id} of ${context.mission} has only the position of its conversation: ${describePosition(conversation)}. ${conversation.adapter} keeps it in a database that other sessions share`,
      { hint: `lazarus conversation ${context.mission}, to print it as it is now` },
    );
  throw noConversation(context, `checkpoint ${ref.id} of ${context.mission} has no conversation`);
}

/** How far the conversation has come; null without one. */
export async function readPositionNow(context: MissionContext): Promise<ConversationPosition | null> {
  const now = await readTranscriptNow(context);
  return now === undefined ? null : toConversation(null, now).position;
}

function toConversation(checkpoint: string | null, transcript: Transcript): Conversation {
  const { adapter, session, texts } = transcript;
  const position = toStored(adapter, session, adapter.transcript.position(texts));
  return { checkpoint, position, entries: adapter.transcript.entries(texts) };
}

function noConversation({ mission }: MissionContext, message: string): LazarusError {
  return new LazarusError("NOT_FOUND", message, {
    hint: `only agents that Lazarus has an adapter for have one; to print the output: lazarus logs ${mission}`,
  });
}

function readTranscriptAt(context: MissionContext, checkpoint: Checkpoint): Transcript | undefined {
  using contents = openContents(context.vault, checkpoint.layers);
  return readTranscript(context, treeOf(contents, `${CONVERSATION_DIRECTORY}/`), treeOf(contents, ""));
}

/** The position of a restored tree, for drills. */
export function readRestoredPosition(
  context: MissionContext,
  root: string,
): ConversationPosition | undefined {
  const transcript = readTranscript(context, openStagedTree(root), openTree(root));
  if (transcript === undefined) return undefined;
  const { adapter, session, texts } = transcript;
  return toStored(adapter, session, adapter.transcript.position(texts));
}

function treeOf(contents: Contents, prefix: string): StagedTree {
  return {
    list: () =>
      [...contents.listing.values()]
        .filter(({ path, type }) => type === "file" && path.startsWith(prefix))
        .map(({ path, size }) => ({ path: path.slice(prefix.length), size })),
    read(path) {
      const chunks: Buffer[] = [];
      const entry = contents.listing.get(prefix + path);
      if (entry?.type === "file") contents.read(entry, (chunk) => chunks.push(Buffer.from(chunk)));
      return Buffer.concat(chunks);
    },
  };
}

function readTranscript(
  context: MissionContext,
  tree: StagedTree,
  cell: Pick<StagedTree, "read">,
): Transcript | undefined {
  const recorded = parseSession(parse(tree));
  const adapter = recorded === undefined ? undefined : context.findAdapter(recorded.adapter);
  const session = recorded?.session ?? null;
  if (adapter === undefined || session === null || !adapter.isSessionId(session)) return undefined;
  const files = [...listStaged(tree, adapter.name), ...databasesInCell(adapter, cell)];
  if (files.length === 0) return undefined;
  const scratch = mkdtempSync(join(tmpdir(), "lazarus-conversation-"));
  try {
    const locate = (file: StagedFile) => {
      const copy = join(scratch, "database");
      writeFileSync(copy, file.read());
      return copy;
    };
    return { adapter, session, texts: readTexts(adapter, session, files, locate) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The databases that an agent has in the cell, because a variable of its adapter says so. They are not copies. */
function databasesInCell(adapter: Adapter, cell: Pick<StagedTree, "read">): StagedFile[] {
  const root = "/cell";
  const nowhere = { cwd: root, home: root, env: {} };
  const values = Object.values(adapter.env?.(nowhere, join(root, "state", adapter.name)) ?? {});
  return values.flatMap((value): StagedFile[] => {
    const bytes = value.startsWith(`${root}/`) ? cell.read(value.slice(root.length + 1)) : Buffer.alloc(0);
    if (bytes.length === 0) return [];
    return [{ name: basename(value), kind: "sqlite", size: bytes.length, read: () => bytes }];
  });
}

/** A restored tree that no other process writes to. */
function openTree(root: string): Pick<StagedTree, "read"> {
  return {
    read: (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path)) : Buffer.alloc(0)),
  };
}

function parse(tree: StagedTree): Readonly<Record<string, unknown>> {
  if (!tree.list().some(({ path }) => path === "session.json")) return {};
  const value: unknown = quietly(() => JSON.parse(tree.read("session.json").toString("utf8")));
  return isJsonObject(value) ? value : {};
}
