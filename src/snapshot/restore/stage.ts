// Creates every path that a plan will place, on the file system of its final place. All bytes are read and verified
// here, so that a damaged vault or a full disk is found while the cell is untouched (INV-3). Staged paths have their final
// mode, owner, attributes and time; only a rename is left.
import { linkSync } from "node:fs";
import { dirname } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { MissionContext } from "../mission-context.ts";
import { type Flaw, storedLength } from "../model/entry.ts";
import type { FileToMake } from "./batches.ts";
import { withConsequence } from "./damage-hint.ts";
import { detectCapabilities, makeSpecial } from "./make-path.ts";
import type { RestorePlan } from "./plan.ts";
import { makeAllFiles } from "./pool.ts";
import type { Source } from "./source.ts";
import {
  findStaging,
  makeStaging,
  removeStaging,
  type Staging,
  stagedName,
  stagingOf,
} from "./staging-place.ts";
import { syncPaths } from "./sync.ts";

export async function stagePlan(
  context: MissionContext,
  plan: RestorePlan,
  source: Source,
  signal?: AbortSignal,
): Promise<Flaw[]> {
  const staging = findStaging(context);
  const { place } = plan;
  const placeOf = (index: number) => `${stagingOf(staging, place[index]!.entry.path)}/${stagedName(index)}`;
  try {
    removeStaging(context);
    makeStaging(context, staging, place.length);
    crashPoint("snapshot.restore.staging-made");
    const flaws = await stageFiles(context, staging, { plan, source, signal });
    const capabilities = detectCapabilities();
    for (const [index, { entry, inode }] of place.entries()) {
      if (entry.type !== "file") makeSpecial(placeOf(index), entry, capabilities, flaws);
      else if (isLink(staging, place, index)) linkSync(placeOf(inode), placeOf(index));
      else if (inode !== index) flaws.push({ path: entry.path, kind: "degraded", reason: SPLIT_LINK });
    }
    for (const directory of new Set([staging.cell, staging.worktree])) {
      const names = [...place.keys()].filter((i) => placeOf(i).startsWith(`${directory}/`)).map(stagedName);
      syncPaths(directory, [...names, ...new Set(names.map(dirname)), "."]);
    }
    crashPoint("snapshot.restore.staged");
    return flaws;
  } catch (error) {
    removeStaging(context);
    const where = staging.worktree;
    throw withConsequence(error, `staging the restore in ${where}`, where, "the cell was not touched");
  }
}

const SPLIT_LINK = "a hard link cannot span two file systems; it is a copy";

/** Whether the step is staged as a hard link to an earlier one. */
function isLink(staging: Staging, place: RestorePlan["place"], index: number): boolean {
  const { entry, inode } = place[index]!;
  const leader = place[inode]!.entry;
  return inode !== index && stagingOf(staging, entry.path) === stagingOf(staging, leader.path);
}

async function stageFiles(
  context: MissionContext,
  staging: Staging,
  { plan: { place }, source, signal }: { plan: RestorePlan; source: Source; signal: AbortSignal | undefined },
): Promise<Flaw[]> {
  const files = new Map<string, FileToMake[]>();
  let total = 0;
  for (const [index, { entry }] of place.entries()) {
    if (entry.type !== "file" || isLink(staging, place, index)) continue;
    const root = stagingOf(staging, entry.path);
    const wanted = files.get(root) ?? [];
    if (wanted.length === 0) files.set(root, wanted);
    wanted.push({ path: stagedName(index), entry });
    total += storedLength(entry);
  }
  let done = 0;
  const onDone = (bytes: number) => {
    done += bytes;
    context.onProgress({ phase: "staging", done, total, unit: "bytes" });
  };
  const flaws: Flaw[] = [];
  for (const [root, wanted] of files)
    flaws.push(...(await makeAllFiles({ root, replace: false }, wanted, source.layers, { onDone, signal })));
  return flaws;
}
