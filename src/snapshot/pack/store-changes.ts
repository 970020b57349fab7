// Stores what a survey found changed: one ordinary layer and, where secrets changed, one local-only layer. What could not
// be read is left out and said so (INV-6); key files never reach a layer that can be pushed (INV-7).

import type { Survey } from "../capture/survey.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem, CaptureItem, MissedItem } from "../model/capture-item.ts";
import type { CheckpointMetadata, Flaw } from "../model/entry.ts";
import { comparePaths, parentPath } from "../model/path-bytes.ts";
import { someParent, whiteoutsFor } from "../scan/classify.ts";
import { TYPE_CODES } from "../scan/stat-cache.ts";
import { everythingIn } from "../scan/still.ts";
import { createSecretMatcher } from "../settings.ts";
import { encodeHeader } from "../tar/header.ts";
import { type Codec, codecFor } from "../vault/codec.ts";
import { createLayerWriter } from "../vault/layer-writer.ts";
import type { LayerRef } from "../vault/manifest.ts";
import { copyDatabase } from "./copy-databases.ts";
import { bytesOf, type Packed, type PackRequest, packItems, packWhiteouts } from "./pack.ts";
import type { BegunLayer } from "./pack-ahead.ts";
import { isMuch, type Pool } from "./pool.ts";

export interface Stored {
  readonly layers: LayerRef[];
  readonly packed: Packed;
  readonly storedBytes: number;
}

export const NOTHING_PACKED: Packed = { captured: new Map(), missed: [] };

/** Writes the ordinary layer and, where secrets changed, the local-only one. */
export async function storeChanges(
  context: MissionContext,
  found: Survey,
  flaws: Flaw[],
  pool: Pool,
): Promise<Stored> {
  const codec = codecFor(context.settings.compression);
  const { begun } = found;
  const total = found.changed.reduce((sum, item) => sum + bytesOf(item), begun?.bytes ?? 0);
  // First of all: its threads start while the work for them is laid out.
  if (isMuch(total)) pool.warm();
  const isSecret = createSecretMatcher(context.settings.secrets);
  const secretGroups = new Set(
    found.changed.filter((item) => item.group !== undefined && isSecret(item.path)).map((item) => item.group),
  );
  const isLocal = (item: CaptureItem) =>
    item.type !== "directory" &&
    (isSecret(item.path) || (item.group !== undefined && secretGroups.has(item.group)));
  // A directory was stored in the ordinary layer whatever its name, and so is its removal.
  const isLocalRemoval = (path: string) => isSecret(path) && !found.removedDirectories.has(path);
  // Asked for only where something was removed: a map of 100,000 paths takes its time.
  const setAnew = new Map(
    found.removed.length === 0 ? [] : found.changed.map(({ path, type }) => [path, type]),
  );
  const whiteouts = whiteoutsFor(found.removed, setAnew);
  const packed: Packed = { captured: begun?.captured ?? new Map(), missed: [] };
  const layers: LayerRef[] = [];
  let done = 0;
  const onBytes = (count: number) => {
    done += count;
    context.onProgress({ phase: "storing", done, total, unit: "bytes" });
  };
  const lostDirectories = new Set<string>();
  const isBelowLost = (path: string) =>
    lostDirectories.size > 0 && someParent(path, (parent) => lostDirectories.has(parent));
  const local = new Set(found.changed.filter(isLocal));
  /** What the survey had put off; its secrets are left for the local layer. */
  const takeLate = async (): Promise<CaptureItem[]> => {
    if (found.late === undefined) return [];
    const late = await found.late();
    flaws.push(...late.flaws);
    for (const { path, group } of late.items)
      if (group !== undefined && isSecret(path)) secretGroups.add(group);
    for (const item of late.items) if (isLocal(item)) local.add(item);
    return late.items.filter((item) => !local.has(item));
  };
  for (const localOnly of [false, true]) {
    const plan: LayerPlan = {
      codec,
      localOnly,
      items: found.changed.filter((item) => local.has(item) === localOnly && !isBelowLost(item.path)),
      whiteouts: whiteouts.filter((path) => isLocalRemoval(path) === localOnly),
      removed: found.removed.filter((path) => isLocalRemoval(path) === localOnly && !setAnew.has(path)),
      isOwn: (path) => isSecret(path) === localOnly,
      takeLate: localOnly ? async () => [] : takeLate,
      onBytes,
      ...(localOnly || begun === undefined ? {} : { begun }),
    };
    const isEmpty = plan.items.length + plan.removed.length + lostDirectories.size === 0;
    if (isEmpty && plan.begun === undefined) continue;
    layers.push(...(await storeLayer(context, found, plan, { all: packed, flaws, lostDirectories, pool })));
  }
  for (const [path, { torn, degraded }] of packed.captured) {
    if (torn !== undefined) flaws.push({ path, kind: "torn", reason: torn });
    if (degraded !== undefined) flaws.push({ path, kind: "degraded", reason: degraded });
  }
  for (const { path, why, reason } of packed.missed)
    if (why !== "vanished" && !packed.captured.has(path)) flaws.push({ path, kind: "skipped", reason });
  return { layers, packed, storedBytes: layers.reduce((sum, layer) => sum + layer.size, 0) };
}

interface LayerPlan {
  readonly codec: Codec;
  readonly localOnly: boolean;
  readonly items: readonly CaptureItem[];
  readonly whiteouts: readonly string[];
  readonly removed: readonly string[];
  /** Items that become known only after the first ones are packed. */
  readonly takeLate: () => Promise<CaptureItem[]>;
  /** Whether a path belongs into this kind of layer. */
  readonly isOwn: (path: string) => boolean;
  readonly onBytes: (count: number) => void;
  /** What stands in the layer already. */
  readonly begun?: BegunLayer;
}

/** What the layers of one checkpoint gather together. */
interface Gathered {
  readonly all: Packed;
  readonly flaws: Flaw[];
  /** Directories that were there and could not be stored: what stands below them is not in the checkpoint either. */
  readonly lostDirectories: Set<string>;
  readonly pool: Pool;
}

async function storeLayer(
  context: MissionContext,
  found: Survey,
  plan: LayerPlan,
  { all, flaws, lostDirectories, pool }: Gathered,
): Promise<LayerRef[]> {
  const { codec, localOnly, begun } = plan;
  const name = localOnly ? "local" : "layer";
  const writer =
    begun?.writer ?? createLayerWriter(context.machine.disk, context.vault, { codec, localOnly, name });
  try {
    const request = {
      root: context.cellRoot,
      captured: all.captured,
      writer,
      codec: codec.name,
      compress: codec.compress,
      onBytes: plan.onBytes,
    };
    const ahead = (await begun?.settle(plan.onBytes)) ?? [];
    packWhiteouts(request, plan.whiteouts);
    const first = [...ahead, ...(await packItems(request, plan.items, pool))];
    const items = [...(begun?.items ?? []), ...plan.items];
    const copied = await copyLateDatabases(context, found, first, items, flaws);
    const late = await plan.takeLate();
    const again = [...vanishedDirectories(first, items), ...copied, ...late];
    const second = await packItems(request, again, pool);
    const third = await packItems(
      request,
      await copyLateDatabases(context, found, second, late, flaws),
      pool,
    );
    const missed = [...[...first, ...second].filter(({ why }) => why !== "database"), ...third];
    for (const item of missed) all.missed.push(item);
    packStandIns(request, [...second, ...third]);
    const lost = findLost(found, plan, missed, all.captured, lostDirectories);
    const removed = [...plan.removed, ...lost].sort(comparePaths);
    if (writer.entered + removed.length === 0) return [];
    packWhiteouts(request, whiteoutsFor(lost, new Map()));
    return [writer.finish(removed)];
  } finally {
    writer.abandon();
  }
}

/** Directories that were not there when they were looked at: an agent that builds anew has them back in a moment. */
function vanishedDirectories(missed: readonly MissedItem[], items: readonly CaptureItem[]): CaptureItem[] {
  const vanished = new Set(missed.filter(({ why }) => why === "vanished").map(({ path }) => path));
  if (vanished.size === 0) return [];
  return items.filter(({ path, type }) => type === "directory" && vanished.has(path));
}

/** A directory that is gone for good, from which something was captured before: it is made up, and that is said. */
function packStandIns(request: PackRequest, missed: readonly MissedItem[]): void {
  const gone = new Set(missed.map(({ path }) => path));
  const needed = new Set<string>();
  if (gone.size > 0) {
    for (const path of request.captured.keys()) {
      for (let up = parentPath(path); up !== "."; up = parentPath(up)) if (gone.has(up)) needed.add(up);
    }
  }
  const stands = [...needed].sort(comparePaths).map(
    (path): CapturedItem => ({
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
      torn: "the directory vanished while it was being captured; its mode and time are made up",
    }),
  );
  if (stands.length === 0) return;
  const raw = Buffer.concat(stands.map(({ entry }) => encodeHeader(entry, { storedSize: 0 })));
  request.writer.append(request.compress(raw), raw, stands.length);
  request.writer.enter(stands.map(({ entry }) => entry));
  for (const stand of stands) request.captured.set(stand.entry.path, stand);
}

/** Known paths that could not be stored now are not in this checkpoint: better absent than stale. */
function findLost(
  found: Survey,
  plan: LayerPlan,
  missed: readonly MissedItem[],
  captured: ReadonlyMap<string, CapturedItem>,
  lostDirectories: Set<string>,
): string[] {
  if (missed.length + lostDirectories.size === 0) return [];
  const known = new Map(
    everythingIn(found.walk, found.cache)
      .filter(({ row }) => row >= 0)
      .map(({ path, type }) => [path, type] as const),
  );
  const wasThere = new Set([...known.keys(), ...found.removed]);
  const lost = new Set(
    missed.map(({ path }) => path).filter((path) => wasThere.has(path) && !captured.has(path)),
  );
  for (const path of lost) if (known.get(path) === "directory") lostDirectories.add(path);
  if (lostDirectories.size > 0) {
    for (const path of known.keys()) {
      if (!captured.has(path) && plan.isOwn(path) && someParent(path, (up) => lostDirectories.has(up)))
        lost.add(path);
    }
  }
  return [...lost].sort(comparePaths);
}

/** Databases whose transaction began after the walk: copied now, through SQLite. */
async function copyLateDatabases(
  context: MissionContext,
  found: Survey,
  missed: readonly MissedItem[],
  items: readonly CaptureItem[],
  flaws: Flaw[],
): Promise<CaptureItem[]> {
  const again: CaptureItem[] = [];
  for (const { path, why } of missed) {
    if (why !== "database") continue;
    const item = items.find((each) => each.path === path)!;
    await copyDatabase(context, path, found.sources, context.vault.scratch, flaws);
    again.push({ path, type: "file", size: item.size, source: found.sources.get(path)! });
  }
  return again;
}

/** Counts what the checkpoint holds, not what the walk saw: what was skipped or folded into a database is no file. */
export function countAll(
  found: Survey,
  stored: Stored,
  fresh: readonly (CapturedItem | undefined)[],
): CheckpointMetadata["counts"] {
  const { captured } = stored.packed;
  const removed = new Set(found.removed);
  let files = 0;
  let directories = 0;
  let others = 0;
  let bytes = 0;
  for (const [i, { path, type, size, unchanged }] of found.walk.found.entries()) {
    const item = fresh[i];
    if (item === undefined && (!unchanged || (removed.size > 0 && removed.has(path)))) continue;
    if (type === "file") {
      files += 1;
      bytes += item?.entry.size ?? size;
    } else if (type === "directory") directories += 1;
    else others += 1;
  }
  const { walk, cache } = found;
  for (let row = 0; row < walk.still.length; row += 1) {
    if (walk.still[row] === 0) continue;
    const type = cache!.types[row];
    if (type === TYPE_CODES.file) {
      files += 1;
      bytes += cache!.sizes[row]!;
    } else if (type === TYPE_CODES.directory) directories += 1;
    else others += 1;
  }
  let changedBytes = 0;
  for (const { entry } of captured.values()) changedBytes += entry.size;
  return {
    files,
    directories,
    others,
    bytes,
    changed: captured.size,
    removed: found.removed.length,
    changed_bytes: changedBytes,
    stored_bytes: stored.storedBytes,
  };
}
