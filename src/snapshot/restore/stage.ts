// Creates every path that a plan will place, next to the cell on the same file system. All bytes are read and verified
// here, so that a damaged vault or a full disk is found while the cell is untouched (INV-3). Staged paths have their final
// mode, owner, attributes and time; only a rename is left.
import { linkSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { MissionContext } from "../mission-context.ts";
import type { Flaw } from "../model/entry.ts";
import type { FileToMake } from "./batches.ts";
import { withConsequence } from "./damage-hint.ts";
import { detectCapabilities, makeSpecial } from "./make-path.ts";
import type { RestorePlan } from "./plan.ts";
import { makeAllFiles } from "./pool.ts";
import type { Source } from "./source.ts";
import { syncPaths } from "./sync.ts";

/** Next to the cell; the scan of cells ignores names with this prefix. */
export function stagingDirectory(context: Pick<MissionContext, "cellRoot" | "mission">): string {
  return join(dirname(context.cellRoot), `.lazarus-restore-${context.mission}`);
}

const PER_DIRECTORY = 1024;

/** Where step `index` of `plan.place` is staged, below the staging directory. */
export function stagedName(index: number): string {
  return `${Math.floor(index / PER_DIRECTORY)}/${index}`;
}

export async function stagePlan(
  context: MissionContext,
  plan: RestorePlan,
  source: Source,
  signal?: AbortSignal,
): Promise<Flaw[]> {
  const staging = stagingDirectory(context);
  const { place } = plan;
  try {
    removeStaging(context);
    mkdirSync(staging, { recursive: true, mode: 0o700 });
    for (let at = 0; at < place.length; at += PER_DIRECTORY) mkdirSync(`${staging}/${at / PER_DIRECTORY}`);
    crashPoint("snapshot.restore.staging-made");
    const flaws = await stageFiles(context, plan, source, signal);
    const capabilities = detectCapabilities();
    for (const [index, { entry, inode }] of place.entries()) {
      const path = `${staging}/${stagedName(index)}`;
      if (entry.type !== "file") makeSpecial(path, entry, capabilities, flaws);
      else if (inode !== index) linkSync(`${staging}/${stagedName(inode)}`, path);
    }
    const names = place.map((_, index) => stagedName(index));
    syncPaths(staging, [...names, ...new Set(names.map(dirname)), "."]);
    crashPoint("snapshot.restore.staged");
    return flaws;
  } catch (error) {
    removeStaging(context);
    throw withConsequence(error, `staging the restore in ${staging}`, staging, "the cell was not touched");
  }
}

async function stageFiles(
  context: MissionContext,
  plan: RestorePlan,
  source: Source,
  signal: AbortSignal | undefined,
): Promise<Flaw[]> {
  const files: FileToMake[] = [];
  let total = 0;
  for (const [index, { entry, inode }] of plan.place.entries()) {
    if (entry.type !== "file" || inode !== index) continue;
    files.push({ path: stagedName(index), entry });
    total += entry.location?.length ?? 0;
  }
  let done = 0;
  const onDone = (_: number, bytes: number) => {
    done += bytes;
    context.onProgress({ phase: "staging", done, total, unit: "bytes" });
  };
  const task = { root: stagingDirectory(context), replace: false };
  return makeAllFiles(task, files, source.layers, onDone, signal);
}

export function removeStaging(context: Pick<MissionContext, "cellRoot" | "mission">): void {
  removeTree(stagingDirectory(context));
}
