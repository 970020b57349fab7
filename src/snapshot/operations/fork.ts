// Forks a mission: a new cell from a checkpoint, and a new vault that shares the stored layers. Everything is staged under
// the new vault's lock; the rename of the finished cell is the last step, so a killed fork leaves no mission and can
// be repeated.

import { copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { adoptConversation } from "../../agents/conversation/adopt.ts";
import { BOOTSTRAPPED, pathsBelow } from "../../cell/layout.ts";
import { readHistoryBytes } from "../../effects/merge-history.ts";
import { epochSeconds } from "../../platform/clock.ts";
import { formatCount } from "../../platform/count.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { type JsonObject, readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Lock } from "../../platform/lock.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import { type CaptureResult, capture } from "../capture/capture.ts";
import { findOutside } from "../git/outside.ts";
import { adoptCopies } from "../git/outside-adopt.ts";
import { type MissionContext, placedAt } from "../mission-context.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { withGoodCheckpointHint } from "../restore/damage-hint.ts";
import { effectsPosition } from "../restore/effects.ts";
import { fillDirectory, prepareDirectory } from "../restore/fill-directory.ts";
import { WHOLE_CELL } from "../restore/scope.ts";
import { skippedPaths } from "../restore/shortfalls.ts";
import { createTableReader, openSource } from "../restore/source.ts";
import { syncPaths } from "../restore/sync.ts";
import { type Checkpoint, readCheckpoint } from "../vault/manifest.ts";
import type { Vault } from "../vault/vault.ts";
import {
  adoptEffects,
  announceHistory,
  discardNewHistory,
  type ForkedEffects,
  hasEarlierHistory,
  nameFork,
} from "./carry-effects.ts";
import { discardEmptyVault, lockVault } from "./lock.ts";
import { refuseProtecting } from "./protect.ts";
import { recordNewMission } from "./record.ts";

/** The new mission. */
export interface ForkResult {
  readonly from: CheckpointRef;
  /** The one checkpoint of the new mission. */
  readonly capture: CaptureResult;
  readonly effects: ForkedEffects;
  readonly flaws: readonly Flaw[];
  /** Paths that the fork does not have, because they were skipped when the checkpoint was taken. */
  readonly notSaved: readonly Flaw[];
  /** What the user should know before an agent works in the new cell. */
  readonly warnings: readonly string[];
}

/** Which checkpoint a new mission starts from. */
export interface ForkOptions {
  /** Id, prefix of an id, `latest`, or a time. */
  readonly at?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** `context` is the source mission's, `fork` the new mission's. */
export async function forkMission(
  context: MissionContext,
  fork: MissionContext,
  options: ForkOptions,
): Promise<ForkResult> {
  const lookup = { mission: context.mission, text: options.at, nowMs: context.machine.clock.nowMs() };
  const from = findCheckpoint(context.vault.list(), lookup);
  refuseTaken(fork);
  using locked = await lockVault(fork, `fork of ${context.mission} into ${fork.mission}`);
  refuseTaken(fork);
  const result = await withGoodCheckpointHint(context.vault, from, () =>
    makeFork(context, fork, from, locked.lock, options.signal),
  );
  recordNewMission(fork, { forked_from: context.mission, checkpoint: from.id }, result.capture);
  return result;
}

function refuseTaken(fork: MissionContext): void {
  refuseProtecting(fork);
  if (existsSync(fork.cellRoot)) {
    throw new LazarusError("TARGET_NOT_EMPTY", `mission ${fork.mission} already exists: ${fork.cellRoot}`, {
      hint: "choose another name for the fork",
      details: { cell: fork.cellRoot },
    });
  }
  const others = fork.vault.list().filter((ref) => ref.reason !== "fork");
  if (others.length > 0) {
    throw new LazarusError(
      "TARGET_NOT_EMPTY",
      `the vault ${fork.vault.root} holds ${formatCount(others.length, "checkpoint")} of an earlier mission ${fork.mission}`,
      {
        hint: `choose another name for the fork, or restore the earlier mission: lazarus restore ${fork.mission}`,
      },
    );
  }
}

async function makeFork(
  context: MissionContext,
  fork: MissionContext,
  from: CheckpointRef,
  lock: Lock,
  signal: AbortSignal | undefined,
): Promise<ForkResult> {
  const staging = join(dirname(fork.cellRoot), `.lazarus-fork-${fork.mission}`);
  const cell = join(staging, "cell");
  const hadHistory = hasEarlierHistory(fork, staging);
  try {
    removeTree(staging);
    const checkpoint = readCheckpoint(context.vault, from);
    makeDirectory(context.machine.disk, staging);
    if (!hadHistory) announceHistory(fork, staging);
    crashPoint("snapshot.fork.staging-made");
    prepareDirectory(cell, from.id);
    const into = { directory: cell, scope: WHOLE_CELL, onProgress: fork.onProgress, signal };
    const source = openSource(context.vault, createTableReader(context.vault)(checkpoint));
    const filled = await fillDirectory(source, into, false);
    adoptCopies(cell, { home: fork.cellRoot, isDuplicate: true });
    crashPoint("snapshot.fork.filled");
    writeIdentity(fork, cell, context.mission, from.id);
    crashPoint("snapshot.fork.named");
    const conversation = adoptConversation({ ...fork, cellRoot: cell });
    crashPoint("snapshot.fork.conversation-adopted");
    const carried = {
      bytes: readHistoryBytes(context.effects.file),
      position: effectsPosition(checkpoint.metadata),
      checkpoint: from.id,
    };
    const forkAt = adoptEffects(fork, carried);
    const effects = nameFork(fork, context.mission, forkAt.effects.position());
    crashPoint("snapshot.fork.history-copied");
    const capture = await captureFork(context, forkAt, checkpoint, cell, lock);
    syncPaths(cell, [...source.listing.keys(), ...(conversation?.paths ?? [])]);
    crashPoint("snapshot.fork.synced");
    renameSync(cell, fork.cellRoot);
    syncPaths(dirname(fork.cellRoot), ["."]);
    crashPoint("snapshot.fork.put");
    removeTree(staging);
    return {
      from,
      capture,
      effects,
      flaws: [...filled.flaws, ...capture.flaws],
      notSaved: skippedPaths(checkpoint.metadata, WHOLE_CELL),
      warnings: [
        ...findSharedGitDirectory(context, fork),
        ...(conversation?.session === null
          ? [`${fork.mission} starts without the conversation: ${conversation.reason}`]
          : []),
      ],
    };
  } catch (error) {
    removeTree(staging);
    discardNewHistory(fork, hadHistory);
    discardEmptyVault(fork, lock);
    throw asLazarusError(error, `forking ${context.mission} into ${fork.cellRoot}`, dirname(fork.cellRoot));
  }
}

/** Sets mission id and paths in the files of the new cell; other fields are kept. */
function writeIdentity(fork: MissionContext, cell: string, from: string, checkpoint: string): void {
  const { disk, clock } = fork.machine;
  const staged = pathsBelow(fork.config, cell);
  const final = pathsBelow(fork.config, fork.cellRoot);
  const now = epochSeconds(clock);
  const edit = (file: string, changes: JsonObject) => {
    makeDirectory(disk, dirname(file));
    const reading = readJsonFile(file);
    writeJsonFile(disk, file, { ...(reading.ok ? reading.value : {}), ...changes });
  };
  const forkedFrom = { mission_id: from, checkpoint_id: checkpoint };
  edit(staged.missionFile, { mission_id: fork.mission, created_at: now, forked_from: forkedFrom });
  edit(staged.configFile, {
    mission_id: fork.mission,
    worktree: final.worktree,
    artifacts: final.artifacts,
    heartbeat_file: final.heartbeatFile,
  });
  // The heartbeat in the checkpoint belongs to the other mission. An agent may have deleted its directory.
  makeDirectory(disk, dirname(staged.heartbeatFile));
  writeJsonFile(disk, staged.heartbeatFile, {
    mission_id: fork.mission,
    timestamp: now,
    status: BOOTSTRAPPED,
  });
}

/**
 * Takes the first checkpoint of the new vault: the layers of the source checkpoint, and one more with what changed. Until
 * then the source manifest is in the index, so that the capture has something to compare with.
 */
async function captureFork(
  context: MissionContext,
  fork: MissionContext,
  checkpoint: Checkpoint,
  cell: string,
  lock: Lock,
): Promise<CaptureResult> {
  const blobs = [...checkpoint.layers.map(({ digest }) => digest), ...checkpoint.documents];
  // Of a blob that was set aside, only the parts that this checkpoint needs are known to be intact: everything is stored again.
  if (blobs.every(context.vault.has)) {
    for (const digest of new Set(blobs)) shareBlob(context.vault, fork.vault, digest);
    crashPoint("snapshot.fork.blobs-shared");
    fork.vault.publish([seedOf(checkpoint.ref, context.mission)]);
    crashPoint("snapshot.fork.seeded");
  }
  const message = `fork of ${context.mission} at ${checkpoint.ref.id}`;
  const captured = await capture(placedAt(fork, cell), lock, { reason: "fork", message });
  const ref = { ...captured.ref, parent: null };
  fork.vault.publish([ref]);
  crashPoint("snapshot.fork.published");
  return { ...captured, ref, checkpoint: { ...captured.checkpoint, ref } };
}

function seedOf(ref: CheckpointRef, mission: string): CheckpointRef {
  return {
    ...ref,
    reason: "fork",
    message: `unfinished fork of ${mission}`,
    parent: null,
    pinned: false,
    provenAtMs: null,
    beforeRestoreOf: null,
  };
}

/** Hard-links a blob; copies it when the vaults are on different file systems. */
function shareBlob(from: Vault, to: Vault, digest: string): void {
  const path = to.blobPath(digest);
  if (existsSync(path) && statSync(path).size === statSync(from.blobPath(digest)).size) return;
  rmSync(path, { force: true });
  try {
    linkSync(from.blobPath(digest), path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "EXDEV" && code !== "EPERM" && code !== "EMLINK") throw error;
    const copy = join(to.scratch, "blob");
    copyFileSync(from.blobPath(digest), copy);
    syncPaths(to.scratch, ["blob"]);
    to.adopt(copy, digest);
  }
}

/** The `.git` file of a linked worktree of which the checkpoint has no copy: both cells would now write to one directory. */
function findSharedGitDirectory(context: MissionContext, fork: MissionContext): string[] {
  const file = join(fork.cellRoot, "worktree", ".git");
  const place = findOutside(fork.cellRoot, ["worktree/.git"])[0]?.targets[0];
  if (place === undefined) return [];
  return [
    `the worktree of ${fork.mission} is a linked git worktree and shares index and HEAD with ${context.mission}, in ${place}. ` +
      `Before an agent uses git there: rm ${file} && git init ${dirname(file)}`,
  ];
}
