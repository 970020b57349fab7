// Removes expired flows and old finished ones. Write order: key recorded as used → file removed → once records and lock
// removed. So the key is known at every moment, and a record exists as long as its flow. What to remove is decided by
// a pure function.
import { readdirSync, rmSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, sweepTemporaries } from "../../platform/durable.ts";
import { quietly } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { pidInUse } from "../../platform/process-identity.ts";
import { findQuarantined } from "../document/bad-flow.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "../document/document.ts";
import { isTooLong } from "../document/id.ts";
import { listFlows } from "../document/list.ts";
import { isPrivateDirectory, privatePath } from "../document/private-directory.ts";
import { readFlow } from "../document/read.ts";
import {
  type FlowPlace,
  flowExists,
  listDirectories,
  placeOf,
  type Workspace,
} from "../document/workspace.ts";
import { mutexPath, removeDeadMutexes, withChangeMutex } from "../locking/change-mutex.ts";
import { livenessOf, type Owner } from "../locking/owner.ts";
import { lockVerdict, readLock } from "../locking/resume-lock.ts";
import { hasLiveCommand, ONCE } from "../once/record.ts";
import { audit } from "./audit.ts";
import { recordUsedKey } from "./used-keys.ts";

export const DEFAULT_KEEP_DAYS = 30;
const DAY_MS = 86_400_000;

export type PruneReason = "expired" | "old";

/** Why a flow may be removed; undefined when it is kept. */
export function pruneReason(
  document: FlowDocument,
  nowMs: number,
  keepDays: number,
): PruneReason | undefined {
  if (isExpired(document, nowMs)) return "expired";
  if (isUnfinished(document)) return undefined;
  const updatedMs = parseIsoMs(document.updatedAt) ?? nowMs;
  return nowMs - updatedMs > keepDays * DAY_MS ? "old" : undefined;
}

/** A flow that was removed. */
export interface Pruned {
  readonly workflowId: string;
  readonly file: string;
  readonly status: string;
  readonly why: PruneReason;
}

/** The flows that were removed and kept. */
export interface PruneResult {
  readonly removed: readonly Pruned[];
  /** Kept because a live process holds the lock or runs a command for it. */
  readonly held: readonly Pruned[];
}

/** Removes expired and old flows, and records their keys. */
export async function pruneFlows(
  workspace: Workspace,
  { me, keepDays, dryRun }: { me: Owner; keepDays: number; dryRun: boolean },
): Promise<PruneResult> {
  const { machine, root } = workspace;
  const directories = listDirectories(root);
  const removed: Pruned[] = [];
  const held: Pruned[] = [];
  for (const { place, document } of listFlows(root).flows) {
    const why = pruneReason(document, machine.clock.nowMs(), keepDays);
    if (why === undefined) continue;
    const entry = { workflowId: place.stem, file: place.file, status: document.status, why };
    const preview = isHeld(machine, place, document, me) ? "held" : "removed";
    const outcome = dryRun ? preview : await removeOne(workspace, place, me, keepDays);
    if (outcome === "held") held.push(entry);
    else if (outcome === "removed") removed.push(entry);
  }
  if (!dryRun) {
    for (const directory of directories) await sweep(workspace, directory, me);
    if (removed.length > 0)
      await audit(workspace, "prune", { removed: removed.map(({ workflowId }) => workflowId) });
  }
  return { removed, held };
}

/** Whether a live process works on it. The lock of a finished flow does not count; a running command does. */
function isHeld(machine: Machine, place: FlowPlace, document: FlowDocument, me: Owner): boolean {
  if (isUnfinished(document) && lockVerdict(machine, readLock(place), me) === "held") return true;
  return hasLiveCommand(place, (owner) => livenessOf(machine.processes, owner, me) === "alive");
}

async function removeOne(
  workspace: Workspace,
  place: FlowPlace,
  me: Owner,
  keepDays: number,
): Promise<"removed" | "kept" | "held"> {
  const { machine } = workspace;
  return withChangeMutex(machine, mutexPath(place.directory, place.stem), () => {
    const reading = readFlow(place);
    if (reading.state !== "ok") return "kept";
    // Checked again under the mutex: it may have been renewed since.
    if (pruneReason(reading.document, machine.clock.nowMs(), keepDays) === undefined) return "kept";
    if (isHeld(machine, place, reading.document, me)) return "held";
    recordUsedKey(workspace, reading.document);
    crashPoint("flow.prune.key-recorded");
    removeFile(machine.disk, place.file);
    crashPoint("flow.prune.removed");
    removeRecords(place);
    crashPoint("flow.prune.records-removed");
    removeFile(machine.disk, place.lockFile);
    return "removed";
  });
}

/** Removes what killed processes left: temporaries, mutexes, and records and locks of removed flows. */
async function sweep({ machine }: Workspace, directory: string, me: Owner): Promise<void> {
  for (const each of isPrivateDirectory(directory) ? [directory, privatePath(directory)] : [directory]) {
    await removeDeadMutexes(machine, each);
    sweepTemporaries(machine.disk, each, pidInUse);
  }
  const stems = new Set(listNames(privatePath(directory, ONCE)));
  for (const name of listNames(directory)) {
    if (name.endsWith(".lock") && !name.startsWith(".")) stems.add(name.slice(0, -".lock".length));
  }
  for (const stem of stems) if (!isTooLong(stem)) await removeOrphans(machine, placeOf(directory, stem), me);
}

/** Under the mutex, since a flow of that name may be started at any moment. */
async function removeOrphans(machine: Machine, place: FlowPlace, me: Owner): Promise<void> {
  const isGone = () => !flowExists(place) && findQuarantined(place.directory, place.stem) === undefined;
  if (!isGone()) return;
  await withChangeMutex(machine, mutexPath(place.directory, place.stem), () => {
    if (!isGone()) return;
    removeRecords(place);
    if (lockVerdict(machine, readLock(place), me) === "dead") removeFile(machine.disk, place.lockFile);
  });
}

function removeRecords({ directory, stem }: FlowPlace): void {
  // Through a link this would delete unrelated files.
  if (isPrivateDirectory(directory, ONCE))
    rmSync(privatePath(directory, ONCE, stem), { recursive: true, force: true });
}

function listNames(directory: string): string[] {
  return quietly(() => readdirSync(directory)) ?? [];
}
