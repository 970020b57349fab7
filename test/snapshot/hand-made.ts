// Builds vaults layer by layer, for tests that need a certain state without a cell or a capture.

import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { timeOrderedId } from "../../src/platform/ids.ts";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";
import { type MissionContext, openMissionContext } from "../../src/snapshot/mission-context.ts";
import type { CheckpointMetadata, CheckpointRef, Entry } from "../../src/snapshot/model/entry.ts";
import { encodeHeader, encodeSparseMap, encodeWhiteout, padding } from "../../src/snapshot/tar/header.ts";
import { type Codec, gzipCodec } from "../../src/snapshot/vault/codec.ts";
import { createLayerWriter } from "../../src/snapshot/vault/layer-writer.ts";
import { type LayerRef, putManifest } from "../../src/snapshot/vault/manifest.ts";
import type { TocEntry } from "../../src/snapshot/vault/toc-row.ts";
import type { Vault } from "../../src/snapshot/vault/vault.ts";
import { createSeededIds, createSimulatedClock, type SimulatedClock } from "../../src/testing/index.ts";
import { checkpointRef } from "./checkpoint-refs.ts";

export interface SeededMachine extends Machine {
  readonly clock: SimulatedClock;
}

/** Real files and locks; simulated time, and ids from a seed. */
export function seededMachine(seed = 1): SeededMachine {
  return { ...systemMachine, clock: createSimulatedClock(), ids: createSeededIds(seed) };
}

export function fixtureContext(
  machine: Machine,
  home: string,
  mission = "m",
  document: object = {},
): MissionContext {
  mkdirSync(home, { recursive: true });
  const effective = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
  return openMissionContext(machine, { ...effective, document: document as never }, parseMissionId(mission), {
    version: "0",
  });
}

export type Draft = Partial<Entry> & {
  readonly path: string;
  readonly content?: string;
  readonly linkTo?: string;
};

export function draftEntry(draft: Draft): Omit<Entry, "location"> {
  const { content = "", linkTo: _linkTo, ...given } = draft;
  const type = given.type ?? "file";
  return {
    mode: type === "directory" ? 0o755 : 0o644,
    uid: process.getuid!(),
    gid: process.getgid!(),
    mtimeSec: 1_700_000_000,
    mtimeNs: 123_456_789,
    size: content.length,
    sha256: type === "file" ? createHash("sha256").update(content, "latin1").digest("hex") : "",
    ...given,
    type,
  };
}

const PER_MEMBER = 3;

export function makeLayer(
  context: Pick<MissionContext, "machine" | "vault">,
  drafts: readonly Draft[],
  removed: readonly string[] = [],
  codec: Codec = gzipCodec,
): LayerRef {
  const { machine, vault } = context;
  const writer = createLayerWriter(machine.disk, vault, {
    codec,
    localOnly: false,
    name: `hand-${drafts.length}`,
  });
  const entries: TocEntry[] = [];
  const places = new Map<string, TocEntry>();
  let raw: Buffer[] = removed.map(encodeWhiteout);
  let length = raw.reduce((sum, { length: each }) => sum + each, 0);
  let inMember = 0;
  const flush = () => {
    const bytes = Buffer.concat(raw);
    if (bytes.length > 0) writer.append(codec.compress(bytes), bytes, inMember);
    raw = [];
    inMember = 0;
  };
  for (const [i, draft] of drafts.entries()) {
    const entry = draftEntry(draft);
    const content = Buffer.from(draft.content ?? "", "latin1");
    const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
    const stored = draft.linkTo === undefined ? map.length + content.length : 0;
    const header = encodeHeader(entry, {
      storedSize: stored,
      ...(draft.linkTo === undefined ? {} : { linkTo: draft.linkTo }),
    });
    const parts = stored === 0 ? [header] : [header, map, content, Buffer.alloc(padding(stored))];
    const leader = draft.linkTo === undefined ? undefined : places.get(draft.linkTo);
    const at = leader?.at ?? length + header.length + map.length;
    const row: TocEntry = leader
      ? { ...leader, path: entry.path }
      : content.length === 0
        ? entry
        : { ...entry, at, length: content.length };
    entries.push(row);
    inMember += 1;
    places.set(entry.path, row);
    for (const part of parts) {
      raw.push(part);
      length += part.length;
    }
    if (i % PER_MEMBER === PER_MEMBER - 1) flush();
  }
  flush();
  writer.enter(entries);
  return writer.finish(removed);
}

export interface CheckpointDraft extends Partial<Omit<CheckpointRef, "manifest">> {
  readonly metadata?: Partial<CheckpointMetadata>;
}

/** Publishes one more checkpoint made of these layers. Takes no lock: the caller holds it, or no other process uses the vault. */
export function publishCheckpoint(
  context: Pick<MissionContext, "machine" | "vault">,
  layers: readonly LayerRef[],
  given: CheckpointDraft = {},
): CheckpointRef {
  const { machine, vault } = context;
  const { metadata, ...extra } = given;
  const createdAtMs = given.createdAtMs ?? machine.clock.nowMs();
  const id = given.id ?? timeOrderedId(createdAtMs, machine.ids);
  const stored = putManifest(vault, {
    metadata: {
      ...defaultMetadata(vault, id, createdAtMs),
      reason: given.reason ?? "manual",
      message: given.message ?? null,
      parent: given.parent ?? null,
      ...metadata,
    },
    layers,
  });
  const ref = checkpointRef(id, createdAtMs, { ...extra, id, createdAtMs, ...stored });
  vault.publish([...vault.list(), ref]);
  return ref;
}

function defaultMetadata(vault: Vault, id: string, createdAtMs: number): CheckpointMetadata {
  return {
    format: 1,
    checkpoint_id: id,
    mission: vault.mission,
    parent: null,
    reason: "manual",
    message: null,
    agent: null,
    created_ms: createdAtMs,
    host: "hand",
    lazarus_version: "0",
    git: { status: "none", head: null, branch: null, commit: null, ref: null, note: null },
    counts: {
      files: 0,
      directories: 0,
      others: 0,
      bytes: 0,
      changed: 0,
      removed: 0,
      changed_bytes: 0,
      stored_bytes: 0,
    },
    flows: [],
    runs: [],
    flaws: [],
    excluded: [],
  };
}

/** A context whose vault exists and is unlocked. */
export async function initializedContext(
  machine: Machine,
  home: string,
  mission = "m",
  document: object = {},
): Promise<MissionContext> {
  const context = fixtureContext(machine, home, mission, document);
  (await context.vault.lock("making a vault by hand"))[Symbol.dispose]();
  return context;
}

export const BASE: readonly Draft[] = [
  { path: ".", type: "directory" },
  { path: "worktree", type: "directory" },
  { path: "worktree/a.txt", content: "alpha\n" },
  { path: "worktree/b.txt", content: "beta\n".repeat(500) },
  { path: "worktree/c.bin", content: "\u0000\u0001\u00ff".repeat(300) },
  { path: "worktree/empty" },
  { path: "worktree/link", type: "symlink", target: "a.txt" },
];

export function blobFile(context: MissionContext, digest: string): string {
  return join(context.vault.root, "blobs", "sha256", digest.slice("sha256:".length));
}
