// Removes what has served: expired flows and old finished ones. Order for each: key buried → file removed → its records
// and lock removed. So a key is known at every moment, and a record is never gone while its flow could still ask
// for it. What to remove is a pure choice.
import { readdirSync, rmSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, sweepTemporaries } from "../../platform/durable.ts";
import type { Machine } from "../../platform/machine.ts";
import { pidInUse } from "../../platform/process-identity.ts";
import { findQuarantined } from "../document/bad-flow.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "../document/document.ts";
import { isTooLong } from "../document/id.ts";
import { listFlows } from "../document/list.ts";
import { isOwn, ownPath } from "../document/private-directory.ts";
import { readFlow } from "../document/read.ts";
import { type FlowPlace, isThere, listDirectories, placeOf, type Workspace } from "../document/workspace.ts";
import { clearDeadGuards, guardPath, withGuard } from "../locking/change-mutex.ts";
import { livenessOf, type Owner } from "../locking/owner.ts";
import { readLock, verdictFor } from "../locking/resume-lock.ts";
import { hasLiveCommand, ONCE } from "../once/record.ts";
import { audit } from "./audit.ts";
import { bury } from "./used-keys.ts";

export const DEFAULT_KEEP_DAYS = 30;
const DAY_MS = 86_400_000;

export type PruneReason = "expired" | "old";

/** Why a flow may go; undefined when it stays. */
export function whyPrune(document: FlowDocument, nowMs: number, keepDays: number): PruneReason | undefined {
  if (isExpired(document, nowMs)) return "expired";
  if (isUnfinished(document)) return undefined;
  const updatedMs = parseIsoMs(document.updatedAt) ?? nowMs;
  return nowMs - updatedMs > keepDays * DAY_MS ? "old" : undefined;
}

export interface Pruned {
  readonly workflowId: string;
  readonly file: string;
  readonly status: string;
  readonly why: PruneReason;
}

export interface PruneResult {
  readonly removed: readonly Pruned[];
  /** Expired or old, but someone alive holds the lock, or runs a command for it. */
  readonly held: readonly Pruned[];
}

export async function pruneFlows(
  workspace: Workspace,
  { me, keepDays, dryRun }: { me: Owner; keepDays: number; dryRun: boolean },
): Promise<PruneResult> {
  const { machine, root } = workspace;
  const directories = listDirectories(root);
  const removed: Pruned[] = [];
  const held: Pruned[] = [];
  for (const { place, document } of listFlows(root).flows) {
    const why = whyPrune(document, machine.clock.nowMs(), keepDays);
    if (why === undefined) continue;
    const entry = { workflowId: place.stem, file: place.file, status: document.status, why };
    const free = isHeld(machine, place, document, me) ? "held" : true;
    const gone = dryRun ? free : await removeOne(workspace, place, me, keepDays);
    if (gone === "held") held.push(entry);
    else if (gone) removed.push(entry);
  }
  if (!dryRun) {
    for (const directory of directories) await sweep(workspace, directory, me);
    if (removed.length > 0)
      await audit(workspace, "prune", { removed: removed.map(({ workflowId }) => workflowId) });
  }
  return { removed, held };
}

/** Someone alive is still at it. A lock on finished work means nothing; a command that runs does. */
function isHeld(machine: Machine, place: FlowPlace, document: FlowDocument, me: Owner): boolean {
  if (isUnfinished(document) && verdictFor(machine, readLock(place), me) === "held") return true;
  return hasLiveCommand(place, (owner) => livenessOf(machine.processes, owner, me) === "alive");
}

async function removeOne(
  workspace: Workspace,
  place: FlowPlace,
  me: Owner,
  keepDays: number,
): Promise<boolean | "held"> {
  const { machine } = workspace;
  return withGuard(machine, guardPath(place.directory, place.stem), () => {
    const reading = readFlow(place);
    if (reading.state !== "ok") return false;
    // Looked at again: it may have been renewed since.
    if (whyPrune(reading.document, machine.clock.nowMs(), keepDays) === undefined) return false;
    if (isHeld(machine, place, reading.document, me)) return "held";
    bury(workspace, reading.document);
    crashPoint("flow.prune.buried");
    removeFile(machine.disk, place.file);
    crashPoint("flow.prune.removed");
    removeRecords(place);
    crashPoint("flow.prune.records-removed");
    removeFile(machine.disk, place.lockFile);
    return true;
  });
}

/** What killed processes left behind: temporaries, guards, and records and locks of flows that are gone. */
async function sweep({ machine }: Workspace, directory: string, me: Owner): Promise<void> {
  for (const each of isOwn(directory) ? [directory, ownPath(directory)] : [directory]) {
    await clearDeadGuards(machine, each);
    sweepTemporaries(machine.disk, each, pidInUse);
  }
  const stems = new Set(listNames(ownPath(directory, ONCE)));
  for (const name of listNames(directory)) {
    if (name.endsWith(".lock") && !name.startsWith(".")) stems.add(name.slice(0, -".lock".length));
  }
  for (const stem of stems) if (!isTooLong(stem)) await removeRemains(machine, placeOf(directory, stem), me);
}

/** Inside the guard, since a flow of that name may be started at any moment, and its records be asked for. */
async function removeRemains(machine: Machine, place: FlowPlace, me: Owner): Promise<void> {
  const isGone = () => !isThere(place) && findQuarantined(place.directory, place.stem) === undefined;
  if (!isGone()) return;
  await withGuard(machine, guardPath(place.directory, place.stem), () => {
    if (!isGone()) return;
    removeRecords(place);
    if (verdictFor(machine, readLock(place), me) === "dead") removeFile(machine.disk, place.lockFile);
  });
}

function removeRecords({ directory, stem }: FlowPlace): void {
  // Through a link in the way this would delete a stranger's files.
  if (isOwn(directory, ONCE)) rmSync(ownPath(directory, ONCE, stem), { recursive: true, force: true });
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
