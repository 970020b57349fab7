// Stores the changes of a survey as one ordinary layer and, where key files changed, one local-only layer. Each layer is
// packed in rounds: every item, then a second try for databases in use and directories that vanished, then stand-ins
// for directories that are gone. Paths that could not be read are left out and reported as flaws (INV-6).
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem, CaptureItem, MissedItem, Packed } from "../model/capture-item.ts";
import type { Flaw } from "../model/entry.ts";
import { comparePaths, parentPath } from "../model/path-bytes.ts";
import { someParent, whiteoutsFor } from "../model/paths.ts";
import { createSecretMatcher } from "../path-patterns.ts";
import type { Survey } from "../scan/found.ts";
import { pathsBelow } from "../scan/stat-rows.ts";
import { encodeHeader, encodeWhiteouts } from "../tar/header.ts";
import { codecFor } from "../vault/codec.ts";
import { createLayerWriter } from "../vault/layer-writer.ts";
import type { LayerRef } from "../vault/manifest.ts";
import { copyDatabase, type DatabaseCopy, flawsOf, sourcesOf } from "./copy-databases.ts";
import { planGrownFiles } from "./grown-files.ts";
import { ATTEMPTS, isLarge, planLargeFiles } from "./large-files.ts";
import { type LayerPlan, planLayers } from "./plan-layers.ts";
import { type CapturePool, totalBytesOf } from "./pool.ts";
import { type PackTarget, planSmallFiles } from "./small-files.ts";

export interface Stored {
  readonly layers: readonly LayerRef[];
  readonly captured: ReadonlyMap<string, CapturedItem>;
  /** Paths that were there during the walk and could not be read. */
  readonly missed: readonly MissedItem[];
  /** Paths that the layers remove. */
  readonly removed: readonly string[];
  readonly flaws: readonly Flaw[];
  /** Databases in use that were copied while packing, and the file that was read for each. */
  readonly sources: ReadonlyMap<string, string>;
}

export const NOTHING_STORED: Stored = {
  layers: [],
  captured: new Map(),
  missed: [],
  removed: [],
  flaws: [],
  sources: new Map(),
};

export async function storeLayers(
  context: MissionContext,
  survey: Survey,
  pool: CapturePool,
): Promise<Stored> {
  const isSecret = createSecretMatcher(context.settings.secrets);
  const plans = planLayers(survey, isSecret);
  const total = totalBytesOf(survey.changed);
  let done = 0;
  const work: Work = {
    context,
    survey,
    pool,
    isSecret,
    onBytes(count) {
      done += count;
      context.onProgress({ phase: "storing", done, total, unit: "bytes" });
    },
  };
  const ordinary = await storeLayer(work, plans.ordinary, NO_LAYER);
  const local = await storeLayer(work, plans.local, ordinary);
  const packed = mergePacked(ordinary.packed, local.packed);
  const copies = [...ordinary.copies, ...local.copies];
  return {
    layers: [ordinary.layer, local.layer].filter((layer) => layer !== undefined),
    captured: packed.captured,
    missed: packed.missed.filter(({ path }) => !packed.captured.has(path)),
    removed: [...ordinary.removed, ...local.removed],
    flaws: [...flawsOf(copies), ...flawsOfPacked(packed)],
    sources: sourcesOf(copies),
  };
}

function flawsOfPacked({ captured, missed }: Packed): Flaw[] {
  const flaws: Flaw[] = [];
  for (const [path, { torn, degraded }] of captured) {
    if (torn !== undefined) flaws.push({ path, kind: "torn", reason: torn });
    if (degraded !== undefined) flaws.push({ path, kind: "degraded", reason: degraded });
  }
  for (const { path, why, reason } of missed)
    if (why !== "vanished" && !captured.has(path)) flaws.push({ path, kind: "skipped", reason });
  return flaws;
}

/** What both layers of a checkpoint share. */
interface Work {
  readonly context: MissionContext;
  readonly survey: Survey;
  readonly pool: CapturePool;
  readonly isSecret: (path: string) => boolean;
  readonly onBytes: (count: number) => void;
}

interface StoredLayer {
  /** Undefined when there was nothing to store. */
  readonly layer: LayerRef | undefined;
  readonly packed: Packed;
  readonly copies: readonly DatabaseCopy[];
  /** Known directories that could not be stored: nothing below them is in the checkpoint either. */
  readonly lostDirectories: ReadonlySet<string>;
  readonly removed: readonly string[];
}

const NOTHING_PACKED: Packed = { captured: new Map(), missed: [] };
const NO_LAYER: StoredLayer = {
  layer: undefined,
  packed: NOTHING_PACKED,
  copies: [],
  lostDirectories: new Set(),
  removed: [],
};

/** `below` is the layer that was stored before this one. */
async function storeLayer(work: Work, plan: LayerPlan, below: StoredLayer): Promise<StoredLayer> {
  const { context, survey, pool, onBytes } = work;
  const { localOnly } = plan;
  const lostAbove = below.lostDirectories;
  const items = plan.items.filter(({ path }) => !isBelow(path, lostAbove));
  if (items.length + plan.removed.length + lostAbove.size === 0)
    return { ...NO_LAYER, lostDirectories: lostAbove };
  const codec = codecFor(context.settings.compression);
  const name = localOnly ? "local" : "layer";
  const writer = createLayerWriter(context.machine.disk, context.vault, { codec, localOnly, name });
  try {
    const target: PackTarget = { root: context.tree, codec: codec.name, writer, pool, onBytes };
    writer.appendRaw(encodeWhiteouts(plan.whiteouts), 0);
    const first = await packItems(target, items);
    const copies = await copyLateDatabases(context, first.missed);
    const retried = [...vanishedDirectories(items, first.missed), ...asItems(copies, items)];
    const second = await packItems(target, retried);
    const standIns = packStandIns(target, mergePacked(first, second));
    const merged = mergePacked(first, second, { captured: standIns, missed: [] });
    const packed = { ...merged, missed: merged.missed.filter(({ why }) => why !== "database") };
    const isStored = (path: string) => packed.captured.has(path) || below.packed.captured.has(path);
    const lost = findLost(survey, packed.missed, lostAbove, {
      isStored,
      isOwn: (path) => work.isSecret(path) === localOnly,
    });
    const removed = [...plan.removed, ...lost.paths].sort(comparePaths);
    const { directories: lostDirectories } = lost;
    if (writer.entered + removed.length === 0)
      return { layer: undefined, packed, copies, lostDirectories, removed };
    writer.appendRaw(encodeWhiteouts(whiteoutsFor(lost.paths, new Map())), 0);
    return { layer: writer.finish(removed), packed, copies, lostDirectories, removed };
  } finally {
    writer.abandon();
  }
}

/** Files that have grown come after the others, because their directories may be among those. */
async function packItems(target: PackTarget, items: readonly CaptureItem[]): Promise<Packed> {
  const units = splitUnits(items);
  const isGrown = ([leader]: readonly CaptureItem[]) => leader!.grownFrom !== undefined;
  const grownUnits = units.filter(isGrown);
  if (grownUnits.length === 0) return packUnits(target, units);
  const others = await packUnits(
    target,
    units.filter((unit) => !isGrown(unit)),
  );
  const grown = planGrownFiles(target, grownUnits);
  await target.pool.run(grown.tasks, bytesOfUnits(grownUnits), grown.take);
  return mergePacked(others, grown.packed, await packUnits(target, grown.rewritten));
}

/** Large files follow the small ones in the same run, so that no worker waits for another. */
async function packUnits(target: PackTarget, units: readonly (readonly CaptureItem[])[]): Promise<Packed> {
  const isLargeUnit = (unit: readonly CaptureItem[]) => isLarge(unit[0]!);
  const small = planSmallFiles(
    target,
    units.filter((unit) => !isLargeUnit(unit)),
  );
  const smallTasks = small.tasks.length;
  let large = planLargeFiles(target, units.filter(isLargeUnit));
  await target.pool.run([...small.tasks, ...large.tasks], bytesOfUnits(units), (result, index) => {
    if (index < smallTasks) small.take(result, index);
    else large.take(result, index - smallTasks);
  });
  const packed = [small.packed, large.packed];
  for (let attempt = 2; attempt <= ATTEMPTS && large.changed.length > 0; attempt += 1) {
    const pending = large.changed;
    large = planLargeFiles(target, pending);
    await target.pool.run(large.tasks, bytesOfUnits(pending), large.take);
    packed.push(large.packed);
  }
  return mergePacked(...packed);
}

function bytesOfUnits(units: readonly (readonly CaptureItem[])[]): number {
  return units.reduce((sum, unit) => sum + totalBytesOf(unit), 0);
}

/** Items in layer order, each with the hard links that follow it. */
function splitUnits(items: readonly CaptureItem[]): CaptureItem[][] {
  const units: CaptureItem[][] = [];
  for (const item of items) {
    if (item.linkTo === undefined || units.length === 0) units.push([item]);
    else units.at(-1)!.push(item);
  }
  return units;
}

/**
 * Where a path was packed twice, the later one wins, as it does in the layer. The first round takes in the others: copying a
 * map of 130,000 paths takes longer than everything else that is done when they are packed.
 */
function mergePacked(...rounds: readonly Packed[]): Packed {
  const [first, ...others] = rounds.map(({ captured }) => captured).filter(({ size }) => size > 0);
  for (const later of others) for (const [path, item] of later) first!.set(path, item);
  return { captured: first ?? new Map(), missed: rounds.flatMap((round) => round.missed) };
}

/** Copies databases that were found in use while they were read. */
async function copyLateDatabases(
  context: MissionContext,
  missed: readonly MissedItem[],
): Promise<DatabaseCopy[]> {
  const copies: DatabaseCopy[] = [];
  for (const { path, why } of missed)
    if (why === "database") copies.push(await copyDatabase(context.tree, path, context.vault.scratch));
  return copies;
}

function asItems(copies: readonly DatabaseCopy[], items: readonly CaptureItem[]): CaptureItem[] {
  return copies.map(({ database, source }) => {
    const { size } = items.find(({ path }) => path === database)!;
    return { path: database, type: "file", size, source };
  });
}

/** Directories that were gone for a moment, as when an agent rebuilds them. */
function vanishedDirectories(items: readonly CaptureItem[], missed: readonly MissedItem[]): CaptureItem[] {
  const vanished = new Set(missed.filter(({ why }) => why === "vanished").map(({ path }) => path));
  if (vanished.size === 0) return [];
  return items.filter(({ path, type }) => type === "directory" && vanished.has(path));
}

/** Packs placeholder entries for directories that are gone or replaced although something below them was captured. */
function packStandIns({ writer }: PackTarget, { captured, missed }: Packed): Map<string, CapturedItem> {
  const gone = new Set(missed.map(({ path }) => path).filter((path) => !captured.has(path)));
  const needed = new Set<string>();
  if (gone.size > 0) {
    for (const path of captured.keys()) {
      for (let up = parentPath(path); up !== "."; up = parentPath(up)) if (gone.has(up)) needed.add(up);
    }
  }
  const standIns = [...needed].sort(comparePaths).map(standInFor);
  const headers = standIns.map(({ entry }) => encodeHeader(entry, { storedSize: 0 }));
  writer.appendRaw(Buffer.concat(headers), standIns.length);
  writer.enter(standIns.map(({ entry }) => entry));
  return new Map(standIns.map((item) => [item.entry.path, item]));
}

function standInFor(path: string): CapturedItem {
  return {
    entry: {
      path,
      type: "directory",
      mode: 0o700,
      uid: process.getuid?.() ?? 0,
      gid: process.getgid?.() ?? 0,
      mtimeSec: 0,
      mtimeNs: 0,
      size: 0,
      sha256: "",
    },
    mark: { ctimeMs: Number.NaN, ino: 0, nlink: 0 },
    torn: "the directory vanished while it was being captured; its mode and time are placeholders",
  };
}

interface Lost {
  readonly paths: readonly string[];
  readonly directories: ReadonlySet<string>;
}

/** Known paths that could not be stored are removed from this checkpoint, which would otherwise hold an older version. */
function findLost(
  survey: Survey,
  missed: readonly MissedItem[],
  lostAbove: ReadonlySet<string>,
  layer: { isStored(path: string): boolean; isOwn(path: string): boolean },
): Lost {
  if (missed.length + lostAbove.size === 0) return { paths: [], directories: lostAbove };
  const { rows } = survey;
  const removed = new Set(survey.removed);
  const lost = new Set(
    missed.map(({ path }) => path).filter((path) => rows.stat(path) !== undefined && !layer.isStored(path)),
  );
  const lostHere = [...lost].filter((path) => !removed.has(path) && rows.stat(path)!.type === "directory");
  const directories = new Set([...lostAbove, ...lostHere]);
  for (const path of [...directories].flatMap((directory) => pathsBelow(rows, directory)))
    if (!removed.has(path) && !layer.isStored(path) && layer.isOwn(path)) lost.add(path);
  return { paths: [...lost].sort(comparePaths), directories };
}

function isBelow(path: string, directories: ReadonlySet<string>): boolean {
  return directories.size > 0 && someParent(path, (parent) => directories.has(parent));
}
