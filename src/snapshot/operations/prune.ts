// Removes checkpoints that the retention policy does not keep, and all blobs that no kept checkpoint needs. Order: publish
// the smaller index (from then on they do not exist, INV-2), then remove blobs, manifests before layers, then git refs. A
// crash in between leaves garbage for the next prune; nothing that the index names is ever missing. At the end,
// live points that are kept get manifests.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { sweepTemporaries } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import { pidInUse } from "../../platform/process-identity.ts";
import { withReserve } from "../../platform/reserve.ts";
import { forgetCommits } from "../git/commit.ts";
import type { MissionContext } from "../mission-context.ts";
import { WORKTREE } from "../model/cell-tree.ts";
import type { CheckpointMetadata, CheckpointRef } from "../model/entry.ts";
import type { Retention } from "../settings.ts";
import { isLongLived } from "../vault/live-retention.ts";
import { putManifest, readCheckpoint } from "../vault/manifest.ts";
import { retain, type SizedBlob } from "../vault/retention.ts";
import type { Vault } from "../vault/vault.ts";
import { lockVault } from "./lock.ts";
import { recordPrune } from "./record.ts";

/** Which checkpoints to keep. */
export interface PruneOptions {
  readonly dryRun?: boolean;
  /** Instead of the policy in the config. */
  readonly policy?: Retention;
  /** Also remove checkpoints whose manifest is damaged: nothing of them can be restored. Not the only ones. */
  readonly unreadable?: boolean;
  /** The vault's lock, when the caller has it already. */
  readonly heldLock?: Lock;
}

/** The checkpoints that were removed and kept. */
export interface PruneResult {
  readonly kept: readonly CheckpointRef[];
  readonly removed: readonly CheckpointRef[];
  /** For every id, the rules that keep it or why it is removed. */
  readonly reasons: ReadonlyMap<string, readonly string[]>;
  readonly removedBlobs: number;
  readonly freedBytes: number;
  /** What the vault needs afterwards. */
  readonly vaultBytes: number;
  /** Set when no blob was removed, because a kept checkpoint cannot be read and its blobs are unknown. */
  readonly sweepRefused: string | null;
}

/** The blobs that a manifest needs, itself included, and the metadata of its checkpoint. */
interface Reach {
  readonly blobs: readonly SizedBlob[];
  readonly metadata: CheckpointMetadata;
}

/** Removes checkpoints by retention policy. */
export async function prune(context: MissionContext, options: PruneOptions = {}): Promise<PruneResult> {
  const { vault } = context;
  // Taking the lock would create a vault for a mission that has none.
  if (options.dryRun || !existsSync(vault.root)) return decide(context, options);
  if (options.heldLock !== undefined) return await pruneLocked(context, options);
  // A full disk has no room for the smaller index, whose publication is what frees the disk.
  const result = await withReserve(context.machine.disk, vault.reserveFile, async () => {
    using _locked = await lockVault(context, `prune of ${context.mission}`);
    return await pruneLocked(context, options);
  });
  if (result.removed.length + result.removedBlobs > 0) recordPrune(context, result);
  return result;
}

async function pruneLocked(context: MissionContext, options: PruneOptions): Promise<PruneResult> {
  const decision = decide(context, options);
  if (decision.removed.length > 0) {
    crashPoint("snapshot.prune.decided");
    context.vault.publish(decision.kept);
    crashPoint("snapshot.prune.published");
  }
  if (decision.sweepRefused === null) sweep(context, decision);
  if (decision.removed.length > 0) {
    crashPoint("snapshot.prune.swept");
    await forgetCommits(
      join(context.cellRoot, WORKTREE),
      [...new Set(decision.gitNames)],
      context.environment,
    );
    crashPoint("snapshot.prune.refs-removed");
    storeManifests(context);
  }
  return decision;
}

/** Other tools can read manifests, not records. A later prune removes the records. */
function storeManifests({ vault, machine }: MissionContext): void {
  const nowMs = machine.clock.nowMs();
  const refs = vault.list();
  const stored = refs.map((ref) => {
    if (!ref.isRecord || !isLongLived(ref, nowMs)) return ref;
    return withManifest(vault, ref);
  });
  crashPoint("snapshot.prune.manifests-stored");
  if (stored.some((ref, i) => ref !== refs[i])) vault.publish(stored);
}

/** The point unchanged if its record is damaged or the disk is full: it can be read as before. */
function withManifest(vault: Vault, ref: CheckpointRef): CheckpointRef {
  const { isRecord: _, ...rest } = ref;
  try {
    const checkpoint = readCheckpoint(vault, ref);
    // A manifest is not worth storing a long file again for every point that continues it.
    if (checkpoint.layers.some(({ isContinued }) => isContinued)) return ref;
    return { ...rest, ...putManifest(vault, checkpoint) };
  } catch (error) {
    if (error instanceof LazarusError) return ref;
    throw error;
  }
}

/** After a checkpoint: prunes only when the policy removes something. */
export async function pruneIfDue(context: MissionContext, heldLock: Lock): Promise<PruneResult | undefined> {
  const { autoPrune, retention } = context.settings;
  if (!autoPrune) return undefined;
  // Needs no manifest: reading them all would make every checkpoint of a vault with many of them slow.
  const { remove } = retain(
    context.vault.list(),
    { ...retention, max_bytes: 0 },
    context.machine.clock.nowMs(),
  );
  const isDue = remove.length > 0 || exceeds(context.vault, retention.max_bytes);
  return isDue ? await prune(context, { heldLock }) : undefined;
}

/** Whether all blobs together, garbage included, need more than that; 0: no limit. */
function exceeds(vault: Vault, maxBytes: number): boolean {
  return maxBytes > 0 && vault.blobs().reduce((sum, { size }) => sum + size, 0) > maxBytes;
}

type Decision = PruneResult & {
  readonly garbage: readonly SizedBlob[];
  /** Blobs that were set aside, and that no kept checkpoint needs or that were stored again. */
  readonly evidence: readonly string[];
  /** Names below refs/lazarus/checkpoints/ that no kept checkpoint needs. */
  readonly gitNames: readonly string[];
};

/** Decides what to remove. Read-only. */
function decide(context: MissionContext, options: PruneOptions): Decision {
  const { vault, settings, machine } = context;
  const refs = vault.list();
  const reachOf = createReach(vault);
  const blobsOf = (ref: CheckpointRef) => {
    const reach = reachOf(ref);
    return reach instanceof Error ? [] : reach.blobs;
  };
  const isLost = (ref: CheckpointRef) => {
    const reach = reachOf(ref);
    return reach instanceof LazarusError && reach.kind === "damaged";
  };
  const lost = options.unreadable && !refs.every(isLost) ? refs.filter(isLost) : [];
  const others = refs.filter((ref) => !lost.includes(ref));
  const plan = retain(others, options.policy ?? settings.retention, machine.clock.nowMs(), blobsOf);
  const removed = [...lost, ...plan.remove];
  const needed = new Set<string>();
  const gitNeeded = new Set<string>();
  let sweepRefused: string | null = null;
  for (const ref of plan.keep) {
    const reach = reachOf(ref);
    if (reach instanceof Error) sweepRefused ??= `checkpoint ${ref.id} cannot be read: ${reach.message}`;
    else {
      gitNeeded.add(gitName(ref, reach.metadata));
      for (const { digest } of reach.blobs) needed.add(digest);
    }
  }
  // Manifests first: after a crash in between, every remaining manifest still has its layers.
  const manifests = new Set(refs.map(({ manifest }) => manifest));
  const garbage =
    sweepRefused !== null
      ? []
      : vault
          .blobs()
          .filter(({ digest }) => !needed.has(digest))
          .sort(
            (a, b) => Number(manifests.has(b.digest)) - Number(manifests.has(a.digest)) || a.size - b.size,
          );
  const sum = (blobs: readonly SizedBlob[]) => blobs.reduce((bytes, { size }) => bytes + size, 0);
  const freedBytes = sum(garbage);
  return {
    kept: plan.keep,
    removed,
    reasons: new Map([...plan.reasons, ...lost.map(({ id }) => [id, ["its manifest is damaged"]] as const)]),
    removedBlobs: garbage.length,
    freedBytes,
    vaultBytes: sum(vault.blobs()) - freedBytes,
    sweepRefused,
    garbage,
    evidence: vault.quarantine.list().filter((digest) => !needed.has(digest) || vault.has(digest)),
    gitNames: removed.flatMap((ref) => {
      const reach = reachOf(ref);
      const names = reach instanceof Error ? [ref.id] : [ref.id, gitName(ref, reach.metadata)];
      return names.filter((name) => !gitNeeded.has(name));
    }),
  };
}

const GIT_PREFIX = "refs/lazarus/checkpoints/";

/** A checkpoint of an unchanged worktree shares the ref of an earlier one. */
function gitName(ref: CheckpointRef, { git }: CheckpointMetadata): string {
  return git?.ref?.startsWith(GIT_PREFIX) ? git.ref.slice(GIT_PREFIX.length) : ref.id;
}

function createReach(vault: Vault): (ref: CheckpointRef) => Reach | Error {
  const known = new Map<string, Reach | Error>();
  const sizes = new Map(vault.blobs().map(({ digest, size }) => [digest, size]));
  const read = (ref: CheckpointRef): Reach | Error => {
    try {
      const { layers, documents, metadata } = readCheckpoint(vault, ref);
      const digests = [...documents, ...layers.map(({ digest }) => digest)];
      return { metadata, blobs: digests.map((digest) => ({ digest, size: sizes.get(digest) ?? 0 })) };
    } catch (error) {
      if (error instanceof LazarusError) return error;
      throw error;
    }
  };
  return (ref) => {
    const reach = known.get(ref.manifest) ?? read(ref);
    known.set(ref.manifest, reach);
    return reach;
  };
}

function sweep(context: MissionContext, { garbage, evidence }: Decision): void {
  const { vault, machine } = context;
  try {
    for (const { digest } of garbage) {
      removeBlob(vault, digest);
      crashPoint("snapshot.prune.blob-removed");
    }
    for (const digest of evidence) vault.quarantine.remove(digest);
    // Partial blobs of killed writers.
    const first = garbage[0] ?? vault.blobs()[0];
    if (first !== undefined) sweepTemporaries(machine.disk, dirname(vault.blobPath(first.digest)), pidInUse);
    sweepTemporaries(machine.disk, vault.root, pidInUse);
  } catch (error) {
    throw asLazarusError(error, `pruning the vault ${vault.root}`, vault.root);
  }
}

function removeBlob(vault: Vault, digest: string): void {
  try {
    vault.remove(digest);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
}
