// Removes what has served: expired flows and old finished ones. Order for each: key buried → file removed → its records
// and lock removed. So a key is known at every moment, and a record is never gone while its flow could still ask
// for it. What to remove is a pure choice.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../platform/crash-point.ts";
import { removeFile, sweepTemporaries } from "../platform/durable.ts";
import { pidInUse } from "../platform/process-identity.ts";
import { audit } from "./audit.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "./document.ts";
import { clearDeadGuards, guardPath, withGuard } from "./guard.ts";
import { listFlows } from "./list.ts";
import { readLock, verdictFor } from "./lock.ts";
import { onceDirectory } from "./once-record.ts";
import type { Owner } from "./owner.ts";
import { findQuarantined } from "./quarantine.ts";
import { readFlow } from "./read.ts";
import { bury } from "./tombstone.ts";
import {
  type FlowPlace,
  listDirectories,
  listStems,
  OWN_DIRECTORY,
  placeOf,
  type Workspace,
} from "./workspace.ts";

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
  /** Expired, but someone alive holds the lock. */
  readonly held: readonly Pruned[];
}

export async function pruneFlows(
  workspace: Workspace,
  { me, keepDays, dryRun }: { me: Owner; keepDays: number; dryRun: boolean },
): Promise<PruneResult> {
  const { machine, root } = workspace;
  const removed: Pruned[] = [];
  const held: Pruned[] = [];
  for (const { place, document } of listFlows(root).flows) {
    const why = whyPrune(document, machine.clock.nowMs(), keepDays);
    if (why === undefined) continue;
    const entry = { workflowId: place.stem, file: place.file, status: document.status, why };
    if (dryRun) {
      removed.push(entry);
      continue;
    }
    const gone = await removeOne(workspace, place, me, keepDays);
    if (gone === "held") held.push(entry);
    else if (gone) removed.push(entry);
  }
  if (!dryRun) {
    for (const directory of listDirectories(root)) await sweep(workspace, directory, me);
    if (removed.length > 0)
      await audit(workspace, "prune", { removed: removed.map(({ workflowId }) => workflowId) });
  }
  return { removed, held };
}

async function removeOne(
  { machine, root }: Workspace,
  place: FlowPlace,
  me: Owner,
  keepDays: number,
): Promise<boolean | "held"> {
  return withGuard(machine, guardPath(place.directory, place.stem), () => {
    const reading = readFlow(place);
    if (reading.state !== "ok") return false;
    // Looked at again: it may have been renewed since.
    if (whyPrune(reading.document, machine.clock.nowMs(), keepDays) === undefined) return false;
    if (isUnfinished(reading.document) && verdictFor(machine, readLock(place), me) === "held") return "held";
    bury(machine, root, reading.document);
    crashPoint("flow.prune.buried");
    removeFile(machine.disk, place.file);
    crashPoint("flow.prune.removed");
    rmSync(onceDirectory(place.directory, place.stem), { recursive: true, force: true });
    crashPoint("flow.prune.records-removed");
    removeFile(machine.disk, place.lockFile);
    return true;
  });
}

/** What killed processes left behind: temporaries, guards, and records and locks of flows that are gone. */
async function sweep({ machine }: Workspace, directory: string, me: Owner): Promise<void> {
  await clearDeadGuards(machine, directory);
  sweepTemporaries(machine.disk, directory, pidInUse);
  const stems = new Set(listStems(directory));
  const isGone = (stem: string) => !stems.has(stem) && findQuarantined(directory, stem) === undefined;
  for (const stem of listNames(join(directory, OWN_DIRECTORY, "once"))) {
    if (isGone(stem)) rmSync(onceDirectory(directory, stem), { recursive: true, force: true });
  }
  for (const name of listNames(directory)) {
    const stem = name.endsWith(".lock") && !name.startsWith(".") ? name.slice(0, -".lock".length) : undefined;
    if (stem === undefined || !isGone(stem)) continue;
    const place = placeOf(directory, stem);
    // A flow may have been started since the listing.
    if (existsSync(place.file) || verdictFor(machine, readLock(place), me) !== "dead") continue;
    removeFile(machine.disk, place.lockFile);
  }
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
