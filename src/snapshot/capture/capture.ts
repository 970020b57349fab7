// Captures a cell: copy the agent's conversation → scan → git commit → survey and pack → gate → publish → stat store. Write
// order: layers, then config and manifest, then the index, each durable before the next, so that a checkpoint exists
// completely or not at all (INV-1, INV-2). Nothing in the cell changes except the copy of the conversation, refs and objects
// of its git repository, and copies of what repositories have outside of it (`state/git-outside`). The caller holds the
// vault's lock.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type StageResult, stageConversation } from "../../agents/conversation/stage.ts";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { timeOrderedId } from "../../platform/ids.ts";
import type { Lock } from "../../platform/lock.ts";
import { copyPathOf } from "../git/outside-copy.ts";
import { type MissionContext, requireCell } from "../mission-context.ts";
import type { DirtySet } from "../model/dirty-set.ts";
import type { CheckpointMetadata, CheckpointRef, Flaw, GitPosition, Reason } from "../model/entry.ts";
import { readPositions } from "../model/positions.ts";
import { createCapturePool, totalBytesOf } from "../pack/pool.ts";
import { backupDatabase } from "../pack/sqlite-backup.ts";
import { linkedDirectories } from "../scan/classify.ts";
import type { StatRows } from "../scan/stat-rows.ts";
import { StatStoreError } from "../scan/stat-store.ts";
import {
  type Checkpoint,
  putManifest,
  putRecord,
  readCheckpoint,
  type StoredAs,
  storedAs,
} from "../vault/manifest.ts";
import { findUnsavedFiles, requireWorktree } from "../worktree.ts";
import { type Baseline, openBaseline, readRows, saveBaseline } from "./baseline.ts";
import { shortenChain } from "./chain.ts";
import { countEntries } from "./counts.ts";
import { type Passed, passGate } from "./gate.ts";
import {
  commitCell,
  copyFoundRepositories,
  copyKnownRepositories,
  findOutsideRepositories,
  GIT_NOT_USED,
  gitDirectoryInCell,
  type OutsideCopies,
  writtenByGit,
} from "./git-step.ts";
import { captureRounds, type Rounds } from "./rounds.ts";
import { saveEffects } from "./save-effects.ts";
import { excludedPatterns, type Scan, scanCell } from "./survey.ts";

export interface CaptureOptions {
  readonly reason: Reason;
  readonly message?: string | null;
  readonly agent?: string | null;
  /** Set on the safety checkpoint of a restore. */
  readonly beforeRestoreOf?: string | null;
  /**
   * False for an untrusted repository: its configuration may name programs that git would run. deferred: no commit, because
   * live points are frequent and most are soon removed.
   */
  readonly git?: boolean | "deferred";
  /** A worktree elsewhere that does not exist counts as empty: only for the safety checkpoint of its restore. */
  readonly mayBeMissing?: boolean;
  /** Return the newest checkpoint instead of adding one that equals it. */
  readonly onlyIfChanged?: boolean;
  /**
   * What may have changed since the newest checkpoint; nothing else is examined. Without it, or without the stat store of that
   * checkpoint, the whole cell is walked.
   */
  readonly dirty?: DirtySet | undefined;
}

/** A new checkpoint and its flaws. */
export interface CaptureResult {
  readonly ref: CheckpointRef;
  readonly checkpoint: Checkpoint;
  /** unchanged: the same content as the previous checkpoint, so only the index grew. */
  readonly outcome: "captured" | "unchanged";
  readonly flaws: readonly Flaw[];
}

/** Name and time of the checkpoint being made. */
export interface Identity {
  readonly id: string;
  readonly createdAtMs: number;
}

export async function capture(
  context: MissionContext,
  _lock: Lock,
  options: CaptureOptions,
): Promise<CaptureResult> {
  requireCell(context);
  requireWorktree(context, options);
  const createdAtMs = context.machine.clock.nowMs();
  const identity = { id: timeOrderedId(createdAtMs, context.machine.ids), createdAtMs };
  // Before the cell is read: an effect that happens during the capture counts as later.
  const effects = { position: context.effects.position() };
  try {
    // Before the files are read: a transcript that is older than they are never describes work that they lack.
    const conversation = await stageConversation(context, (file, copy) => backupDatabase(file, copy));
    crashPoint("snapshot.capture.conversation-copied");
    // Only a process that takes one checkpoint after another knows what changed.
    const isRepeated = options.reason === "live" || options.dirty !== undefined;
    using opened = openBaseline(context, { isRepeated });
    const { baseline, collected } = await collectWithStore(context, options, opened, identity);
    const { stored, rows } = collected;
    const passed = passGate(context, { ...stored, below: baseline.rows, rows });
    const flaws = [
      ...conversation.problems,
      ...collected.flaws,
      ...passed.flaws,
      ...findUnsavedFiles(context),
    ];
    // Again: it may have been replaced while it was read.
    requireWorktree(context, options);
    saveEffects(context);
    crashPoint("snapshot.capture.effects-saved");
    return publish(context, options, baseline, {
      ...collected,
      ...passed,
      flaws,
      identity,
      effects,
      conversation,
    });
  } finally {
    emptyScratch(context);
  }
}

/** Everything that a checkpoint consists of, stored but not published. */
interface Collected extends Rounds {
  readonly effects: NonNullable<CheckpointMetadata["effects"]>;
  readonly conversation: StageResult;
  readonly git: GitPosition;
}

type Packed = Omit<Collected, "effects" | "conversation">;

/** A stat store that SQLite cannot read is replaced by the listing of the checkpoint. */
async function collectWithStore(
  context: MissionContext,
  options: CaptureOptions,
  baseline: Baseline,
  identity: Identity,
): Promise<{ readonly baseline: Baseline; readonly collected: Packed }> {
  try {
    return { baseline, collected: await collect(context, options, baseline, identity) };
  } catch (error) {
    if (!(error instanceof StatStoreError) || baseline.head === undefined) throw error;
    const rebuilt = { ...baseline, rows: readRows(context, baseline.head) };
    return { baseline: rebuilt, collected: await collect(context, options, rebuilt, identity) };
  }
}

async function collect(
  context: MissionContext,
  options: CaptureOptions,
  { head, rows, damage }: Baseline,
  identity: Identity,
): Promise<Packed> {
  await using pool = createCapturePool();
  const usesGit = options.git !== false;
  const before = head?.metadata.flaws ?? [];
  const { dirty } = options;
  const { scan, copies } = await scanWithCopies(context, rows, { usesGit, before, dirty });
  pool.prepare(totalBytesOf([...scan.walk.found.values()].filter(({ unchanged }) => !unchanged)));
  const git = await gitPosition(context, options, { ...identity, headId: head?.ref.id ?? null }, scan);
  const written = usesGit && options.git !== "deferred" ? writtenByGit(context, rows) : [];
  const mayContinue = options.reason === "live";
  const rounds = await captureRounds(context, scan, {
    checkpointId: identity.id,
    pool,
    written,
    mayContinue,
  });
  const flaws = [
    ...rounds.flaws,
    ...linkedDirectories(rounds.rows, context.config.required_subdirs),
    ...findOutsideRepositories(context, scan.walk, rounds.rows, { before, copies }),
    ...degraded(".", damage),
    ...degraded("worktree", git.status === "degraded" ? (git.note ?? "git failed") : undefined),
  ];
  return { ...rounds, git, flaws };
}

async function gitPosition(
  context: MissionContext,
  { git }: CaptureOptions,
  identity: Identity & { readonly headId: string | null },
  scan: Scan,
): Promise<GitPosition> {
  if (git === false) return GIT_NOT_USED;
  return await commitCell(context, { ...identity, isDeferred: git === "deferred" }, scan);
}

interface CopyOptions {
  readonly usesGit: boolean;
  /** The flaws of the last checkpoint. */
  readonly before: readonly Flaw[];
  readonly dirty: DirtySet | undefined;
}

/** Scans the cell, with copies of what its git repositories have elsewhere. */
async function scanWithCopies(
  context: MissionContext,
  rows: StatRows,
  { usesGit, before, dirty }: CopyOptions,
): Promise<{ scan: Scan; copies: OutsideCopies }> {
  // Git writes into its own directory, which is therefore scanned after the commit.
  const defer = usesGit ? gitDirectoryInCell(context) : undefined;
  const scan = (copies: OutsideCopies) =>
    scanCell(context, rows, { defer, dirty: dirty && withOwnWrites(dirty, copies) });
  if (!usesGit) return { scan: scan(new Map()), copies: new Map() };
  const known = await copyKnownRepositories(context, before);
  const first = scan(known);
  const found = await copyFoundRepositories(context, first.walk, known);
  const copies = new Map([...known, ...found]);
  return { scan: found.size === 0 ? first : scan(copies), copies };
}

/** What this capture has written into the cell, which no watcher has reported yet. */
function withOwnWrites(dirty: DirtySet, copies: OutsideCopies): DirtySet {
  return {
    ...dirty,
    trees: new Set([...dirty.trees, CONVERSATION_DIRECTORY, ...[...copies.keys()].map(copyPathOf)]),
  };
}

function degraded(path: string, reason: string | undefined): Flaw[] {
  return reason === undefined ? [] : [{ path, kind: "degraded", reason }];
}

/** A checkpoint that may be published. */
interface Restorable extends Collected, Passed {
  readonly identity: Identity;
}

function publish(
  context: MissionContext,
  options: CaptureOptions,
  { head }: Baseline,
  made: Restorable,
): CaptureResult {
  const { identity, stored, rows, flaws } = made;
  const isLive = options.reason === "live";
  if (head !== undefined && made.layers.length === 0 && isSamePosition(head.metadata, made)) {
    const isStored = !head.ref.isRecord || isLive || options.onlyIfChanged;
    const layers = isStored ? head.layers : shortenChain(context, head.layers, isLive);
    const stored = isStored ? storedAs(head.ref) : putManifest(context.vault, { ...head, layers });
    const ref = options.onlyIfChanged ? head.ref : makeRef(options, identity, head.ref.id, stored);
    if (ref !== head.ref) context.vault.publish([...context.vault.list(), ref]);
    if (rows.isNew || layers !== head.layers) saveBaseline(context, rows, layers);
    const checkpoint = isStored ? { ...head, ref } : readCheckpoint(context.vault, ref);
    return { ref, checkpoint, outcome: "unchanged", flaws };
  }
  const layers = shortenChain(context, [...(head?.layers ?? []), ...made.layers], isLive);
  const metadata: CheckpointMetadata = {
    format: 1,
    checkpoint_id: identity.id,
    mission: context.mission,
    parent: head?.ref.id ?? null,
    reason: options.reason,
    message: options.message ?? null,
    agent: options.agent ?? null,
    created_ms: identity.createdAtMs,
    host: context.machine.processes.hostName(),
    lazarus_version: context.version,
    git: made.git,
    counts: countEntries(rows, stored),
    ...readPositions(context.tree),
    ...(made.conversation.position && { conversation: made.conversation.position }),
    effects: made.effects,
    flaws,
    excluded: excludedPatterns(context),
    checked: true,
  };
  const documents = { metadata, layers };
  const manifest =
    isLive && head !== undefined
      ? putRecord(context.vault, documents, head)
      : putManifest(context.vault, documents);
  crashPoint("snapshot.capture.manifest-put");
  const ref = makeRef(options, identity, metadata.parent, manifest);
  context.vault.publish([...context.vault.list(), ref]);
  // Without its rows the next checkpoint reads everything again.
  if (made.areRowsExact) saveBaseline(context, rows, layers);
  crashPoint("snapshot.capture.rows-saved");
  return { ref, checkpoint: readCheckpoint(context.vault, ref), outcome: "captured", flaws };
}

function isSamePosition(
  metadata: CheckpointMetadata,
  { git, flaws, effects }: Pick<Collected, "git" | "flaws" | "effects">,
): boolean {
  if ((metadata.effects?.position ?? 0) !== effects.position) return false;
  return isSameCommit(git, metadata.git) && sorted(flaws) === sorted(metadata.flaws);
}

/** A live point has no commit, which does not count as a difference. */
function isSameCommit(now: GitPosition, then: GitPosition): boolean {
  if (now.status === "deferred") return now.head === then.head && now.branch === then.branch;
  const { status: _, ...ours } = now;
  const { status: __, ...theirs } = then;
  return JSON.stringify(ours) === JSON.stringify(theirs);
}

/** Independent of order: a first checkpoint finds flaws in walk order, a later one in path order. */
function sorted(flaws: readonly Flaw[]): string {
  return JSON.stringify(flaws.map((flaw) => JSON.stringify(flaw)).sort());
}

function makeRef(
  options: CaptureOptions,
  { id, createdAtMs }: Identity,
  parent: string | null,
  stored: StoredAs,
): CheckpointRef {
  return {
    id,
    ...stored,
    createdAtMs,
    reason: options.reason,
    message: options.message ?? null,
    parent,
    pinned: false,
    provenAtMs: null,
    beforeRestoreOf: options.beforeRestoreOf ?? null,
  };
}

/** Copies of databases are large and may hold secrets. */
function emptyScratch({ vault }: MissionContext): void {
  try {
    for (const name of readdirSync(vault.scratch))
      rmSync(join(vault.scratch, name), { recursive: true, force: true });
  } catch {
    // The next holder of the lock empties it.
  }
}
