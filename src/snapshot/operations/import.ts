// Imports an archive or OCI layout as a new mission with one checkpoint. Everything is unpacked into a private directory
// next to the cell and captured there; the final rename creates the mission. After a crash before it, the next import of
// that mission removes the directory and its checkpoint (INV-2).
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Adopted, adoptConversation } from "../../agents/conversation/adopt.ts";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import { type EffectNote, effectsAfter } from "../../effects/notes.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import { posixSupport } from "../../platform/posix.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import { adoptCell } from "../archive/adopt-cell.ts";
import { type SourceOptions, type Unpacked, unpackSource } from "../archive/unpack-source.ts";
import { type CaptureResult, capture } from "../capture/capture.ts";
import { vaultHistory } from "../capture/save-effects.ts";
import { adoptCopies } from "../git/outside-adopt.ts";
import { type MissionContext, placedAt } from "../mission-context.ts";
import type { CarriedEffects } from "../model/carried-effects.ts";
import type { Flaw } from "../model/entry.ts";
import {
  adoptEffects,
  announceHistory,
  discardNewHistory,
  hasEarlierHistory,
  readVaultEffects,
} from "./carry-effects.ts";
import { discardEmptyVault, lockVault } from "./lock.ts";
import { refuseProtecting } from "./protect.ts";
import { prune } from "./prune.ts";
import { recordNewMission } from "./record.ts";

/** What to import, and how. */
export type ImportOptions = SourceOptions;

/** The imported cell and its first checkpoint. */
export interface ImportResult extends CaptureResult {
  /** What the mission did after the checkpoint, according to the effect history that came along. */
  readonly doneSince: readonly EffectNote[];
  /** What the archive had and the cell does not. */
  readonly lost: readonly Flaw[];
  /** "worktree": the archive was not a cell and became the worktree of a new one. */
  readonly as: "cell" | "worktree";
}

const STAGING = ".lazarus-import-";

/** Imports an archive or directory as a new mission. */
export async function importCell(context: MissionContext, options: ImportOptions): Promise<ImportResult> {
  refuseAbsent(options.source);
  refuseTaken(context);
  const staging = join(dirname(context.cellRoot), `${STAGING}${context.mission}`);
  using locked = await lockVault(context, `import of ${context.mission}`);
  const { lock } = locked;
  const hadHistory = hasEarlierHistory(context, staging);
  try {
    rollBack(context, staging);
    refuseTaken(context);
    makeDirectory(context.machine.disk, staging);
    if (!hadHistory) announceHistory(context, staging);
    crashPoint("snapshot.import.staging-made");
    const result = await importInto(context, staging, lock, options);
    recordNewMission(context, { imported: options.source }, result);
    return result;
  } catch (error) {
    rollBack(context, staging);
    await prune(context, { heldLock: lock }).catch(() => {});
    discardNewHistory(context, hadHistory);
    discardEmptyVault(context, lock);
    throw asLazarusError(error, `importing ${options.source} as ${context.mission}`, context.vault.root);
  }
}

async function importInto(
  context: MissionContext,
  staging: string,
  lock: Lock,
  options: ImportOptions,
): Promise<ImportResult> {
  const tree = join(staging, "tree");
  makeDirectory(context.machine.disk, tree);
  const found = await unpackSource(context, tree, options);
  const { unpacker } = found;
  const effects = effectsOf(options.source, found);
  crashPoint("snapshot.import.unpacked");
  const { root, as, unpacked } = locateCell(context, staging, tree);
  adoptCell(context.machine, context.config, {
    mission: context.mission,
    stagedRoot: root,
    finalRoot: context.cellRoot,
    source: basename(options.source),
  });
  adoptCopies(root, { home: context.cellRoot, isDuplicate: true });
  // Only now: without root, a mode may forbid reading, adding to or renaming a directory.
  unpacker.setDirectoryModes(unpacked);
  const conversation = adoptConversation({ ...context, cellRoot: root });
  const lost = [
    ...unpacker.flaws,
    ...leftOut(conversation),
    ...(options.owners ? [] : ensureRootAccess(root)),
  ];
  crashPoint("snapshot.import.adopted");
  const message = `imported from ${basename(options.source)}`;
  const adopted = effects === undefined ? context : adoptEffects(context, effects);
  crashPoint("snapshot.import.history-adopted");
  const result = await capture(placedAt(adopted, root), lock, {
    reason: "import",
    message,
    git: false,
  });
  crashPoint("snapshot.import.captured");
  syncTree(staging);
  if (existsSync(context.cellRoot)) throw taken(context, "a cell");
  renameSync(root, context.cellRoot);
  crashPoint("snapshot.import.renamed");
  context.machine.disk.fsyncDirectory(dirname(context.cellRoot));
  removeTree(staging);
  const doneSince =
    effects === undefined ? [] : effectsAfter(context.effects.read(), adopted.effects.position());
  return { ...result, doneSince, lost, as };
}

/** A conversation that cannot get its own session. */
function leftOut(conversation: Adopted | undefined): Flaw[] {
  if (conversation === undefined || conversation.session !== null) return [];
  return [{ path: CONVERSATION_DIRECTORY, kind: "skipped", reason: `left out: ${conversation.reason}` }];
}

/** A cell whose own directory its owner may not enter can neither be moved into place nor used. */
function ensureRootAccess(root: string): Flaw[] {
  const mode = lstatSync(root).mode & 0o7777;
  if ((mode & 0o700) === 0o700) return [];
  chmodSync(root, mode | 0o700);
  const was = mode.toString(8).padStart(4, "0");
  return [
    { path: ".", kind: "degraded", reason: `its mode ${was} would lock out its owner; u+rwx was added` },
  ];
}

/** Undoes an import that did not reach its rename. */
function rollBack(context: MissionContext, staging: string): void {
  if (!existsSync(staging)) return;
  const refs = context.vault.list();
  const unfinished = !existsSync(context.cellRoot) && refs.length === 1 && refs[0]!.reason === "import";
  if (unfinished) context.vault.publish([]);
  crashPoint("snapshot.import.rolled-back");
  removeTree(staging);
}

function refuseAbsent(source: string): void {
  const found = statSync(source, { throwIfNoEntry: false });
  if (found === undefined)
    throw new LazarusError("NOT_FOUND", `no such archive or layout: ${source}`, {
      hint: `ls -l ${dirname(source)}`,
    });
  // Reading a FIFO would block with the lock held.
  if (!found.isFile() && !found.isDirectory())
    throw new LazarusError("USAGE", `${source} is neither a file nor a directory`, {
      hint: `cat ${source} > cell.tar.gz && lazarus import cell.tar.gz --mission NAME`,
    });
}

function refuseTaken(context: MissionContext): void {
  refuseProtecting(context);
  if (existsSync(context.cellRoot)) throw taken(context, "a cell");
  const staging = join(dirname(context.cellRoot), `${STAGING}${context.mission}`);
  if (context.vault.list().length > 0 && !existsSync(staging)) throw taken(context, "checkpoints");
}

function taken(context: MissionContext, what: string): LazarusError {
  return new LazarusError(
    "TARGET_NOT_EMPTY",
    `mission ${context.mission} already has ${what}; nothing was imported`,
    {
      hint: "import under another name: --mission NAME",
    },
  );
}

/** The history that came along: in an archive, or in a copied vault, where a link or a FIFO is not one. */
function effectsOf(source: string, { comments, point }: Unpacked): CarriedEffects | undefined {
  if (point === undefined) return comments;
  const found = lstatSync(vaultHistory(source), { throwIfNoEntry: false });
  if (!found?.isFile()) return undefined;
  return { bytes: readVaultEffects(source), position: point.position, checkpoint: point.tag };
}

/** A cell has meta/mission.json at the top or in the only directory there; anything else becomes a worktree. */
function locateCell(
  context: MissionContext,
  staging: string,
  tree: string,
): { root: string; as: ImportResult["as"]; unpacked: string } {
  const isCell = (path: string) =>
    [path, join(path, "meta")].every((each) => lstatSync(each, { throwIfNoEntry: false })?.isDirectory()) &&
    (lstatSync(join(path, "meta", "mission.json"), { throwIfNoEntry: false })?.isFile() ?? false);
  if (isCell(tree)) return { root: tree, as: "cell", unpacked: tree };
  const [only, ...more] = readdirSync(tree, { encoding: "buffer" });
  if (only !== undefined && more.length === 0 && isCell(join(tree, only.toString("latin1"))))
    return { root: join(tree, only.toString("latin1")), as: "cell", unpacked: tree };
  const root = join(staging, "cell");
  makeDirectory(context.machine.disk, root);
  const unpacked = join(root, "worktree");
  renameSync(tree, unpacked);
  return { root, as: "worktree", unpacked };
}

/** Makes the files durable before the rename. */
function syncTree(staging: string): void {
  const support = posixSupport();
  if (!support.ok) return;
  const fd = openSync(staging, "r");
  try {
    support.posix.syncFileSystem(fd);
  } finally {
    closeSync(fd);
  }
}
