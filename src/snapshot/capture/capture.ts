// Takes a checkpoint. The order of writes is the order of the lines below: layers → config and manifest → index → stat
// cache, each durable before the next, so that a checkpoint exists whole or not at all (INV-1, INV-2). Nothing in the
// cell is changed but refs and objects of its git repository.
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { timeOrderedId } from "../../platform/ids.ts";
import type { Lock } from "../../platform/lock.ts";
import { keepYoungHeap } from "../../platform/young-heap.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointMetadata, CheckpointRef, Entry, Flaw, GitPosition, Reason } from "../model/entry.ts";
import { readPositions } from "../model/positions.ts";
import { pruneIfDue } from "../operations/prune.ts";
import { beginLayer } from "../pack/pack-ahead.ts";
import { createPool, runTasks } from "../pack/pool.ts";
import { countAll, NOTHING_PACKED, storeChanges } from "../pack/store-changes.ts";
import { finishInterruptedRestore, type Restored } from "../restore/roll-forward.ts";
import { linkedDirectories, someParent } from "../scan/classify.ts";
import { freshItems } from "../scan/next-cache.ts";
import { startProbers } from "../scan/probe.ts";
import { openContents } from "../vault/contents.ts";
import { type Checkpoint, putCheckpoint, readCheckpoint } from "../vault/manifest.ts";
import { hasLargeCache, openHead, saveCache } from "./baseline.ts";
import { compactLayers, planCompaction } from "./compact.ts";
import { askGit, commitCell, GIT_LEFT_ALONE, gitDirectoryInCell } from "./git-step.ts";
import { OWN_NAMES, type Survey, survey } from "./survey.ts";

export interface CaptureOptions {
  readonly reason: Reason;
  readonly message?: string | null;
  readonly agent?: string | null;
  /** Set on the safety checkpoint of a restore. */
  readonly beforeRestoreOf?: string | null;
  /** The vault's lock, when the caller has it already. */
  readonly heldLock?: Lock;
  /** False leaves git alone: the repository of a stranger may name programs that git would run. */
  readonly git?: boolean;
  /** How many paths a first walk finds before storing begins beside it: less than is worth while, in tests. */
  readonly aheadFrom?: number;
}

/** From here on there is work for several threads. */
const MANY = 10_000;

export interface CaptureResult {
  readonly ref: CheckpointRef;
  readonly checkpoint: Checkpoint;
  /** unchanged: the same content as the checkpoint before, so only the index grew. */
  readonly outcome: "captured" | "unchanged";
  readonly flaws: readonly Flaw[];
  /** Checkpoints that the retention policy let go after this one. */
  readonly pruned?: readonly string[];
  /** A restore that had been interrupted and was finished first. */
  readonly finished?: Restored;
}

export async function captureCell(context: MissionContext, options: CaptureOptions): Promise<CaptureResult> {
  refuseMissingCell(context);
  if (options.heldLock !== undefined) return capture(context, options);
  using lock = await context.vault.lock(`checkpoint of ${context.mission}`);
  // A cell in the middle of a restore is neither the old nor the new state: it is finished before it is saved.
  const finished = finishInterruptedRestore(context, lock);
  const result = await capture(context, options);
  const pruned = (await pruneIfDue(context, lock))?.removed.map(({ id }) => id) ?? [];
  return { ...result, pruned, ...(finished === undefined ? {} : { finished }) };
}

async function capture(context: MissionContext, options: CaptureOptions): Promise<CaptureResult> {
  const started: Promise<unknown>[] = [];
  try {
    return await captureLocked(context, options, started);
  } finally {
    // Git may still be at work when storing failed: the lock is not given back under its hands.
    await Promise.allSettled(started);
    // Copies of databases are as large as they are, and may hold secrets.
    emptyScratch(context);
  }
}

function emptyScratch(context: MissionContext): void {
  try {
    for (const name of readdirSync(context.vault.scratch))
      rmSync(join(context.vault.scratch, name), { recursive: true, force: true });
  } catch {
    // The next holder of the lock empties it.
  }
}

/** What is on disk now, as a listing, without writing anything into vault or cell. */
export async function surveyCell(
  context: MissionContext,
): Promise<{ listing: Map<string, Entry>; flaws: Flaw[] }> {
  refuseMissingCell(context);
  const scratch = mkdtempSync(join(tmpdir(), "lazarus-survey-"));
  try {
    const { head, cache } = openHead(context);
    const found = await survey(context, { cache, scratch, groupPrefix: "now" });
    const listing = new Map<string, Entry>();
    if (head !== undefined) {
      using contents = openContents(context.vault, head.layers);
      for (const [path, entry] of contents.listing) listing.set(path, entry);
    }
    for (const path of found.removed) listing.delete(path);
    const { captured, missed } = await describeChanged(context, found);
    const gone = new Set(missed);
    for (const path of gone.size === 0 ? [] : listing.keys())
      if (gone.has(path) || someParent(path, (parent) => gone.has(parent))) listing.delete(path);
    for (const [path, entry] of captured) listing.set(path, entry);
    return { listing, flaws: found.flaws };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function captureLocked(
  context: MissionContext,
  options: CaptureOptions,
  started: Promise<unknown>[],
): Promise<CaptureResult> {
  const createdAtMs = context.machine.clock.nowMs();
  const id = timeOrderedId(createdAtMs, context.machine.ids);
  await using pool = createPool();
  using probers = hasLargeCache(context) ? startProbers() : undefined;
  // Before there is much in memory: the larger a process, the longer it takes to start another.
  const gitPlace = options.git === false ? undefined : askGit(context);
  started.push(Promise.resolve(gitPlace));
  const { head, cache, damage } = openHead(context);
  // Without a cache every path is kept until the end: 90 MB less at 100,000 of them.
  using _heap = cache === undefined ? keepYoungHeap() : undefined;
  using begun = new DisposableStack();
  let git: GitPosition | undefined;
  const found = await survey(context, {
    cache,
    scratch: context.vault.scratch,
    groupPrefix: id,
    defer: gitDirectoryInCell(context),
    probers,
    begin: { from: options.aheadFrom ?? MANY, layer: () => begun.use(beginLayer(context, pool)) },
    meanwhile: async (walk) => {
      const made = { id, createdAtMs, headId: head?.ref.id ?? null };
      const position =
        options.git === false ? GIT_LEFT_ALONE : commitCell(context, made, { walk, cache, place: gitPlace });
      started.push(Promise.resolve(position));
      git = await position;
    },
  });
  crashPoint("snapshot.capture.surveyed");
  const flaws = [...found.flaws, ...linkedDirectories(found.walk, cache, context.config.required_subdirs)];
  if (damage !== undefined) flaws.push({ path: ".", kind: "degraded", reason: damage });
  const noteGit = () => {
    if (git!.status === "degraded")
      flaws.push({ path: "worktree", kind: "degraded", reason: git!.note ?? "git failed" });
  };
  if (found.late === undefined) noteGit();

  if (
    head !== undefined &&
    found.changed.length + found.removed.length === 0 &&
    samePosition(head.metadata, git!, flaws)
  ) {
    const saved = publishAgain(context, options, { id, createdAtMs }, head, flaws);
    if (found.refreshed.size > 0)
      saveCache(context, found, freshItems(found, NOTHING_PACKED), head.ref.manifest);
    return saved;
  }

  const stored = await storeChanges(context, found, flaws, pool);
  // Not at the end: what the threads hold would add to what is to be done yet.
  await pool[Symbol.asyncDispose]();
  if (found.late !== undefined) noteGit();
  // What looked changed could not be read, as last time.
  if (head !== undefined && stored.layers.length === 0 && samePosition(head.metadata, git!, flaws)) {
    const saved = publishAgain(context, options, { id, createdAtMs }, head, flaws);
    saveCache(context, found, freshItems(found, stored.packed), head.ref.manifest);
    return saved;
  }
  const below = head?.layers ?? [];
  const chain = [...below, ...stored.layers];
  const from = planCompaction(chain.map((layer) => layer.size));
  const layers = from === undefined ? chain : compactLayers(context, chain, from);
  const fresh = freshItems(found, stored.packed);
  const metadata: CheckpointMetadata = {
    format: 1,
    checkpoint_id: id,
    mission: context.mission,
    parent: head?.ref.id ?? null,
    reason: options.reason,
    message: options.message ?? null,
    agent: options.agent ?? null,
    created_ms: createdAtMs,
    host: context.machine.processes.hostName(),
    lazarus_version: context.version,
    git: git!,
    counts: countAll(found, stored, fresh),
    ...readPositions(context.cellRoot),
    flaws,
    excluded: [OWN_NAMES, ...context.settings.exclude],
  };
  const manifest = putCheckpoint(context.vault, metadata, layers);
  crashPoint("snapshot.capture.manifest-put");
  const ref = makeRef(options, { id, createdAtMs, parent: metadata.parent, manifest });
  context.vault.publish([...context.vault.list(), ref]);
  saveCache(context, found, fresh, manifest.digest);
  crashPoint("snapshot.capture.cache-written");
  return { ref, checkpoint: readCheckpoint(context.vault, ref), outcome: "captured", flaws };
}

/** Nothing changed: the same manifest under a new name. */
function publishAgain(
  context: MissionContext,
  options: CaptureOptions,
  made: { id: string; createdAtMs: number },
  head: Checkpoint,
  flaws: readonly Flaw[],
): CaptureResult {
  const manifest = { digest: head.ref.manifest, size: head.ref.manifestSize };
  const ref = makeRef(options, { ...made, parent: head.ref.id, manifest });
  context.vault.publish([...context.vault.list(), ref]);
  return { ref, checkpoint: { ...head, ref }, outcome: "unchanged", flaws };
}

function refuseMissingCell(context: MissionContext): void {
  if (existsSync(context.cellRoot)) return;
  throw new LazarusError("MISSION_UNKNOWN", `mission ${context.mission} has no cell at ${context.cellRoot}`, {
    hint:
      context.vault.list().length > 0
        ? `lazarus restore ${context.mission} brings it back from its vault`
        : `lazarus init ${context.mission}`,
  });
}

function samePosition(metadata: CheckpointMetadata, git: GitPosition, flaws: readonly Flaw[]): boolean {
  const { status: _, ...now } = git;
  const { status: __, ...then } = metadata.git;
  return JSON.stringify(now) === JSON.stringify(then) && inOrder(flaws) === inOrder(metadata.flaws);
}

/** A first checkpoint meets them in the order of its walk, a later one in the order of paths. */
function inOrder(flaws: readonly Flaw[]): string {
  return JSON.stringify(flaws.map((flaw) => JSON.stringify(flaw)).sort());
}

function makeRef(
  options: CaptureOptions,
  made: {
    id: string;
    createdAtMs: number;
    parent: string | null;
    manifest: { digest: string; size: number };
  },
): CheckpointRef {
  return {
    id: made.id,
    manifest: made.manifest.digest,
    manifestSize: made.manifest.size,
    createdAtMs: made.createdAtMs,
    reason: options.reason,
    message: options.message ?? null,
    parent: made.parent,
    pinned: false,
    provenAtMs: null,
    beforeRestoreOf: options.beforeRestoreOf ?? null,
  };
}

async function describeChanged(
  context: MissionContext,
  found: Survey,
): Promise<{ captured: Map<string, Entry>; missed: string[] }> {
  const captured = new Map<string, Entry>();
  const missed: string[] = [];
  const totalBytes = found.changed.reduce((sum, item) => sum + item.size, 0);
  const leaders = found.changed.filter((item) => item.linkTo === undefined);
  const tasks = [];
  for (let at = 0; at < leaders.length; at += 256) {
    tasks.push({
      kind: "hash",
      codec: "gzip",
      root: context.cellRoot,
      items: leaders.slice(at, at + 256),
    } as const);
  }
  await runTasks(tasks, { totalBytes }, (result) => {
    for (const { entry } of result.captured) captured.set(entry.path, entry);
    for (const { path, why, reason } of result.missed) {
      missed.push(path);
      if (why !== "vanished") found.flaws.push({ path, kind: "skipped", reason });
    }
  });
  for (const { path, linkTo } of found.changed) {
    const leader = linkTo === undefined ? undefined : captured.get(linkTo);
    if (leader !== undefined) captured.set(path, { ...leader, path });
    else if (linkTo !== undefined) missed.push(path);
  }
  return { captured, missed };
}
