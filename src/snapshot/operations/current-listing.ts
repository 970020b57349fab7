// Lists the current cell in the form of a checkpoint's listing. Writes nothing into vault or cell.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Baseline, openBaseline, readRows } from "../capture/baseline.ts";
import { type SurveyOptions, scanCell, surveyChanges } from "../capture/survey.ts";
import { type MissionContext, requireCell } from "../mission-context.ts";
import { outsideWorktree } from "../model/cell-tree.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { someParent } from "../model/paths.ts";
import { type CapturePool, createCapturePool, hashItems } from "../pack/pool.ts";
import type { Survey } from "../scan/found.ts";
import { StatStoreError } from "../scan/stat-store.ts";
import { openContents } from "../vault/contents.ts";
import { requireWorktree } from "../worktree.ts";

/** The current files of a cell. */
export interface CurrentListing {
  readonly listing: Map<string, Entry>;
  readonly flaws: readonly Flaw[];
}

/** Lists the current files of a cell, in the form of a checkpoint's listing. */
export async function listCurrent(given: MissionContext): Promise<CurrentListing> {
  if (outsideWorktree(given.tree) === undefined) requireCell(given);
  requireWorktree(given, { mayBeMissing: true });
  const scratch = mkdtempSync(join(tmpdir(), "lazarus-survey-"));
  const context = withCell(given, join(scratch, "cell"));
  try {
    await using pool = createCapturePool();
    using baseline = openBaseline(context);
    const { head } = baseline;
    const survey = await surveyCell(context, baseline, { scratch, groupPrefix: "now", pool });
    const listing = new Map<string, Entry>();
    if (head !== undefined) {
      using contents = openContents(context.vault, head.layers);
      for (const [path, entry] of contents.listing) listing.set(path, entry);
    }
    const { entries, missing, flaws } = await describeChanges(context, survey, pool);
    for (const path of survey.removed) listing.delete(path);
    for (const path of missing.size === 0 ? [] : listing.keys())
      if (missing.has(path) || someParent(path, (parent) => missing.has(parent))) listing.delete(path);
    for (const [path, entry] of entries) listing.set(path, entry);
    return { listing, flaws: [...survey.flaws, ...flaws] };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function surveyCell(
  context: MissionContext,
  { head, rows }: Baseline,
  options: SurveyOptions,
): Promise<Survey> {
  try {
    return await surveyChanges(context, scanCell(context, rows), options);
  } catch (error) {
    if (!(error instanceof StatStoreError) || head === undefined) throw error;
    return await surveyChanges(context, scanCell(context, readRows(context, head)), options);
  }
}

/** A worktree outside the cell can exist without it; the directory `empty` then takes the place of the cell. */
function withCell(context: MissionContext, empty: string): MissionContext {
  const worktree = outsideWorktree(context.tree);
  if (worktree === undefined || existsSync(context.cellRoot)) return context;
  mkdirSync(empty);
  return { ...context, cellRoot: empty, tree: { root: empty, worktree } };
}

interface Described {
  readonly entries: ReadonlyMap<string, Entry>;
  /** Paths that could not be read. */
  readonly missing: ReadonlySet<string>;
  readonly flaws: readonly Flaw[];
}

async function describeChanges(
  { tree }: MissionContext,
  { changed }: Survey,
  pool: CapturePool,
): Promise<Described> {
  const leaders = changed.filter((item) => item.linkTo === undefined);
  const { captured, missed } = await hashItems(pool, tree, leaders);
  const entries = new Map<string, Entry>();
  for (const [path, { entry }] of captured) entries.set(path, entry);
  const missing = new Set(missed.map(({ path }) => path));
  for (const { path, linkTo } of changed) {
    const leader = linkTo === undefined ? undefined : entries.get(linkTo);
    if (leader !== undefined) entries.set(path, { ...leader, path });
    else if (linkTo !== undefined) missing.add(path);
  }
  const flaws = missed
    .filter(({ why }) => why !== "vanished")
    .map(({ path, reason }): Flaw => ({ path, kind: "skipped", reason }));
  return { entries, missing, flaws };
}
