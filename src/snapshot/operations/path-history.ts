// What the checkpoints of a mission have at selected paths, oldest first, without restoring or locking anything. Each layer's
// table is decoded at most once, and a checkpoint costs only the layers that the one before it did not have. Also refuses
// paths that do not exist where the user looks for them, and names the checkpoint that has them.
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef, Entry, Listing } from "../model/entry.ts";
import type { Scope } from "../restore/scope.ts";
import { applyToc } from "../vault/contents.ts";
import { readPackedToc, unpackToc } from "../vault/layer-table.ts";
import { type LayerRef, layerSource, readCheckpoint } from "../vault/manifest.ts";
import type { Toc } from "../vault/toc.ts";
import type { Vault } from "../vault/vault.ts";

/** Which paths are selected. */
export interface Selection {
  has(path: string): boolean;
  /** The paths, where they are known: then only their rows are decoded. */
  readonly only?: ReadonlySet<string>;
}

/** One version of a path: how it was from one checkpoint until another. */
export interface Version {
  readonly path: string;
  /** Null: it did not exist. */
  readonly entry: Entry | null;
  /** The first checkpoint that has it. */
  readonly first: CheckpointRef;
  /** The last checkpoint that has it. */
  readonly last: CheckpointRef;
}

export interface PathHistory {
  /** By path, oldest first. A path that was removed and came back has a version without an entry in between. */
  readonly versions: ReadonlyMap<string, readonly Version[]>;
  readonly checkpoints: readonly CheckpointRef[];
  /** Checkpoints that cannot be read: their versions are missing. */
  readonly unreadable: readonly CheckpointRef[];
}

/** The history of the selected paths over `refs`; default all checkpoints. Times alone make no new version. */
export function readPathHistory(
  { vault }: Pick<MissionContext, "vault">,
  selection: Selection,
  refs: readonly CheckpointRef[] = vault.list(),
): PathHistory {
  const rowsOf = createRowReader(vault, selection);
  const versions = new Map<string, Version[]>();
  const readable: CheckpointRef[] = [];
  const unreadable: CheckpointRef[] = [];
  let state: State = { layers: [], entries: new Map() };
  for (const ref of [...refs].sort((a, b) => a.createdAtMs - b.createdAtMs)) {
    let next: Step;
    try {
      next = advance(state, readCheckpoint(vault, ref).layers, rowsOf);
    } catch (error) {
      if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
      unreadable.push(ref);
      continue;
    }
    const before = readable.at(-1);
    for (const path of next.touched) {
      const entry = next.entries.get(path) ?? null;
      addVersion(versions, { path, entry, first: ref, last: ref }, before);
    }
    state = next;
    readable.push(ref);
  }
  closeLast(versions, readable.at(-1));
  return { versions, checkpoints: readable, unreadable };
}

/** The id of the newest checkpoint that has a path, and whether some could not be read. */
function findNewestWith(
  context: Pick<MissionContext, "vault">,
  path: string,
): { readonly newest: string | undefined; readonly isComplete: boolean } {
  const selection = { has: (each: string) => each === path, only: new Set([path]) };
  const { versions, unreadable } = readPathHistory(context, selection);
  const newest = versions.get(path)?.findLast(({ entry }) => entry !== null)?.last.id;
  return { newest, isComplete: unreadable.length === 0 };
}

interface State {
  readonly layers: readonly string[];
  readonly entries: Map<string, Entry>;
}

interface Step extends State {
  /** Paths that may differ from the state before. */
  readonly touched: ReadonlySet<string>;
}

/** The rows of the next checkpoint: applied to the previous state if its layers extend those of the previous checkpoint. */
function advance(state: State, refs: readonly LayerRef[], rowsOf: (ref: LayerRef) => Toc): Step {
  const layers = refs.map(({ digest }) => digest);
  const continues = state.layers.every((digest, i) => digest === layers[i]);
  const added = continues ? refs.slice(state.layers.length) : refs;
  // Decoded before the state changes: a damaged layer must not leave half of it applied.
  const tocs = added.map((ref) => [ref.digest, rowsOf(ref)] as const);
  const entries = new Map(continues ? state.entries : []);
  const touched = new Set(continues ? [] : state.entries.keys());
  for (const [digest, toc] of tocs) {
    for (const { path } of toc.entries) touched.add(path);
    for (const path of toc.removed) touched.add(path);
    applyToc(entries, toc, digest);
  }
  return { layers, entries, touched };
}

function createRowReader(vault: Vault, { has, only }: Selection): (ref: LayerRef) => Toc {
  const known = new Map<string, Toc>();
  return (ref) => {
    const before = known.get(ref.digest);
    if (before !== undefined) return before;
    const source = layerSource(vault, ref);
    const { entries, removed, members } = unpackToc(source, readPackedToc(source), only);
    const rows = {
      members,
      entries: entries.filter(({ path }) => has(path)),
      removed: removed.filter(has),
    };
    known.set(ref.digest, rows);
    return rows;
  };
}

function addVersion(
  versions: Map<string, Version[]>,
  version: Version,
  before: CheckpointRef | undefined,
): void {
  const known = versions.get(version.path);
  if (known === undefined) {
    if (version.entry !== null) versions.set(version.path, [version]);
    return;
  }
  const latest = known.at(-1)!;
  if (isSame(latest.entry, version.entry)) return;
  known[known.length - 1] = { ...latest, last: before ?? latest.first };
  known.push(version);
}

function closeLast(versions: Map<string, Version[]>, newest: CheckpointRef | undefined): void {
  if (newest === undefined) return;
  for (const known of versions.values())
    known[known.length - 1] = { ...known[known.length - 1]!, last: newest };
}

function isSame(a: Entry | null, b: Entry | null): boolean {
  if (a === null || b === null) return a === b;
  return (
    a.type === b.type &&
    a.sha256 === b.sha256 &&
    a.size === b.size &&
    a.mode === b.mode &&
    a.target === b.target
  );
}

/** Where paths are looked up. */
export interface LookedUp {
  /** Names it in the error: "checkpoint … of …". */
  readonly place: string;
  readonly listings: readonly Listing[];
  /** The same command for another checkpoint; the path is quoted for a shell. */
  readonly retry: (checkpoint: string, path: string) => string;
}

/** Refuses a path of the scope that none of the listings has. */
export function requireKnown(
  context: Pick<MissionContext, "vault" | "mission">,
  scope: Scope,
  { place, listings, retry }: LookedUp,
): void {
  const path = scope.only?.find((each) => !listings.some((listing) => listing.has(each)));
  if (path === undefined) return;
  const missing = `${JSON.stringify(path)} is not in ${place}`;
  const { newest, isComplete } = findNewestWith(context, path);
  if (newest !== undefined)
    throw new LazarusError("NOT_FOUND", `${missing}; the newest checkpoint that has it is ${newest}`, {
      hint: retry(newest, shellWord(path)),
      details: { path, newest },
    });
  const alike = findAlike(path, listings).map((each) => JSON.stringify(each));
  const near = alike.length === 0 ? "" : `; similar: ${alike.join(", ")}`;
  const others = isComplete ? "any other checkpoint" : "any other checkpoint that can be read";
  throw new LazarusError("NOT_FOUND", `${missing}, nor in ${others}${near}`, {
    hint: isComplete ? `lazarus ls ${context.mission} worktree` : `lazarus verify ${context.mission}`,
    details: { path },
  });
}

/** At most three paths with the same name. */
function findAlike(path: string, listings: readonly Listing[]): string[] {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const alike = new Set<string>();
  for (const listing of listings) {
    for (const known of listing.keys()) {
      if (alike.size >= 3) break;
      if (known === name || known.endsWith(`/${name}`)) alike.add(known);
    }
  }
  return [...alike];
}

/** For a restore of `checkpoint` in place, which also removes what the cell alone has. */
export function restored(mission: string, checkpoint: string, ...listings: Listing[]): LookedUp {
  return {
    place: `checkpoint ${checkpoint} of ${mission}${listings.length > 1 ? " or in its cell" : ""}`,
    listings,
    retry: (id, path) => `lazarus restore ${mission} ${id} --path ${path}`,
  };
}
