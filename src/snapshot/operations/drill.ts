// A drill proves that a checkpoint can be restored: restores it to a scratch directory next to the cell, compares every
// path with the listing using independent code, and marks the checkpoint as proven. The scratch directory is removed; one
// left by a killed drill is removed by the next command that locks the vault.
import { turnText } from "../../agents/conversation/position.ts";
import { hasStagedFiles } from "../../agents/conversation/staged.ts";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError } from "../../platform/errors.ts";
import { acquireLock, type Lock } from "../../platform/lock.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import { compareTree, type Difference } from "../archive/compare-tree.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { withGoodCheckpointHint } from "../restore/damage-hint.ts";
import { fillDirectory, prepareDirectory } from "../restore/fill-directory.ts";
import { detectCapabilities } from "../restore/make-path.ts";
import { WHOLE_CELL } from "../restore/scope.ts";
import { createTableReader, openSource } from "../restore/source.ts";
import { type Checkpoint, readCheckpoint } from "../vault/manifest.ts";
import { drillPlaces, lockVault } from "./lock.ts";
import { readRestoredPosition } from "./read-conversation.ts";
import { recordDrill } from "./record.ts";

/** What a drill restored, and how it differs from the checkpoint. */
export interface DrillResult {
  /** After the drill. */
  readonly ref: CheckpointRef;
  readonly checkpoint: Checkpoint;
  /** Paths that were compared. */
  readonly paths: number;
  readonly bytes: number;
  readonly differences: readonly Difference[];
  /** What this machine could not restore exactly. */
  readonly flaws: readonly Flaw[];
}

/** Which checkpoint to drill. */
export interface DrillOptions {
  readonly checkpoint?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Restores a checkpoint into a temporary directory and compares it with the checkpoint. */
export async function drill(context: MissionContext, options: DrillOptions = {}): Promise<DrillResult> {
  const { vault, mission, machine } = context;
  const lookup = { mission, text: options.checkpoint, nowMs: machine.clock.nowMs() };
  const ref = findCheckpoint(vault.list(), lookup);
  const checkpoint = await withGoodCheckpointHint(vault, ref, () => readCheckpoint(vault, ref));
  // Not the vault's lock: checkpoints must be possible during a drill, which may take a long time.
  using _drilling = await lockDrill(context);
  const { scratch } = drillPlaces(context);
  const compared = await withGoodCheckpointHint(vault, ref, () =>
    restoreAndCompare(context, checkpoint, scratch, options.signal),
  );
  const differences = compared.differences.length;
  const proven = differences > 0 ? ref : await markProven(context, ref);
  recordDrill(context, { ref: proven, metadata: checkpoint.metadata }, differences);
  return { ref: proven, checkpoint, ...compared };
}

async function lockDrill(context: MissionContext): Promise<Lock> {
  const { vault, mission, machine } = context;
  try {
    return await acquireLock(machine, drillPlaces(context).lockFile, { purpose: `drill of ${mission}` });
  } catch (error) {
    throw asLazarusError(error, `locking the vault ${vault.root}`, vault.root);
  }
}

async function restoreAndCompare(
  context: MissionContext,
  checkpoint: Checkpoint,
  scratch: string,
  signal: AbortSignal | undefined,
) {
  try {
    removeTree(scratch);
    crashPoint("snapshot.drill.scratch-cleared");
    const source = openSource(context.vault, createTableReader(context.vault)(checkpoint));
    prepareDirectory(scratch, checkpoint.ref.id);
    const into = { directory: scratch, scope: WHOLE_CELL, onProgress: context.onProgress, signal };
    const { bytes, flaws } = await fillDirectory(source, into, false);
    crashPoint("snapshot.drill.restored");
    const { owners, posix } = detectCapabilities();
    const differences = compareTree(scratch, source.listing, { owners, posix }, (done, total) =>
      context.onProgress({ phase: "comparing", done, total, unit: "files" }),
    );
    const conversation = compareConversation(context, checkpoint, scratch);
    return { paths: source.listing.size, bytes, differences: [...differences, ...conversation], flaws };
  } catch (error) {
    throw asLazarusError(error, `drilling ${checkpoint.ref.id} in ${scratch}`, scratch);
  } finally {
    removeTree(scratch);
  }
}

/** Another version may count turns differently: then it is enough that the conversation can be read. */
function compareConversation(
  context: MissionContext,
  { metadata }: Checkpoint,
  scratch: string,
): Difference[] {
  const { conversation } = metadata;
  if (conversation === undefined) return [];
  const found = readRestoredPosition(context, scratch);
  const difference = (what: string) => [{ path: CONVERSATION_DIRECTORY, what }];
  // A database that other sessions share is in no checkpoint.
  if (found === undefined) return hasStagedFiles(scratch) ? difference("cannot be read back") : [];
  const isSame = JSON.stringify(found) === JSON.stringify(conversation);
  if (isSame || metadata.lazarus_version !== context.version) return [];
  return difference(`is at ${turnText(found)}, should be at ${turnText(conversation)}`);
}

async function markProven(context: MissionContext, ref: CheckpointRef): Promise<CheckpointRef> {
  const { vault, machine } = context;
  using _locked = await lockVault(context, `drill of ${context.mission}`);
  const marked = { ...ref, provenAtMs: machine.clock.nowMs() };
  // Checkpoints with the same manifest are proven as well; one that was pruned in the meantime stays pruned.
  const refs = vault.list();
  vault.publish(
    refs.map((each) => (each.manifest === ref.manifest ? { ...each, provenAtMs: marked.provenAtMs } : each)),
  );
  crashPoint("snapshot.drill.stamped");
  return refs.some(({ id }) => id === ref.id) ? marked : ref;
}
