// Live points: checkpoints that the pit takes while an agent works, so that a power cut or a deletion loses seconds, not
// hours (INV-10). Keeps track of what changed in each cell since its last point; live-policy.ts decides when the next one is
// due, and the supervisor queues it. Everything here is a cache: a new pit examines every cell once.
import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { hooksFile } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { listWorktreeRecords } from "../../cell/worktree-record.ts";
import { LazarusError } from "../../platform/errors.ts";
import { excludedPatterns } from "../../snapshot/capture/survey.ts";
import { outsideWorktree, rootOf, WORKTREE } from "../../snapshot/model/cell-tree.ts";
import { takeCheckpoint } from "../../snapshot/operations/checkpoint.ts";
import type { PitContext } from "../context.ts";
import { describeError } from "../describe.ts";
import { listAgentMissions } from "../record/store.ts";
import { grantedValues, toSettings } from "../settings.ts";
import type { TreeWatcher, WatchedTree } from "../watch/tree-watcher.ts";
import { type LiveLimits, type LiveState, nextPointMs } from "./live-policy.ts";
import { type LiveStatus, removeLiveStatus, writeLiveStatus } from "./live-status.ts";

/** A mission to protect. */
export interface LiveMission {
  readonly mission: MissionId;
  /** Stored with its points. */
  readonly agent: string | null;
  readonly limits: LiveLimits;
}

export interface LivePoints {
  /** Protects exactly these missions. */
  protect(missions: readonly LiveMission[], monotonicMs: number): void;
  /** Reads what changed; returns the missions whose next point is due and is not being taken. */
  due(monotonicMs: number): MissionId[];
  /** Takes a point if anything changed. Never rejects. */
  take(mission: MissionId): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Tracked extends Omit<LiveMission, "mission"> {
  state: LiveState;
  /** While a point is being taken: since when what it saves was unsaved. */
  savingSinceMs: number | undefined;
  /** Changes that the watcher has counted, and size of the reports of hooks, when they were last read. */
  treeChanges: number;
  hookBytes: number;
  /** Why the watcher does not report changes. */
  unwatched: string | null;
  /** Why the last attempt failed. */
  problem: string | null;
  isBusy: boolean;
  /** The last status that was written. */
  written: string;
}

/** Files in a cell that Lazarus itself writes while an agent works. */
const OWN_FILES = ["/logs/agent.log*", "/logs/daemon.log*", "/conversation", "/state/git-outside"];

export function createLivePoints(context: PitContext, watcher: TreeWatcher): LivePoints {
  const tracked = new Map<MissionId, Tracked>();
  const { clock } = context.machine;
  return {
    protect(missions, monotonicMs) {
      const names = new Set(missions.map(({ mission }) => mission));
      for (const mission of tracked.keys()) {
        if (names.has(mission)) continue;
        tracked.delete(mission);
        watcher.remove(mission);
        removeStatus(context, mission);
      }
      for (const each of missions) {
        const known = tracked.get(each.mission);
        if (known === undefined) tracked.set(each.mission, startTracking(each, monotonicMs));
        else Object.assign(known, { agent: each.agent, limits: each.limits });
        watchTree(context, watcher, each.mission, tracked.get(each.mission)!);
      }
    },
    due(monotonicMs) {
      const due: MissionId[] = [];
      for (const [mission, each] of tracked) {
        observe(context, watcher, mission, each, monotonicMs);
        writeStatus(context, mission, each, monotonicMs);
        if (!each.isBusy && nextPointMs(each.state, each.limits) <= monotonicMs) {
          each.isBusy = true;
          due.push(mission);
        }
      }
      return due;
    },
    async take(mission) {
      const each = tracked.get(mission);
      if (each === undefined) return;
      const startMs = clock.monotonicMs();
      // Counted from here on: what changes in the meantime may be in the point or not.
      const before = each.state;
      each.savingSinceMs = before.firstUnsavedMs;
      each.state = { ...before, firstUnsavedMs: undefined, unsavedChanges: 0 };
      const problem = await takePoint(context, mission, each);
      const endMs = clock.monotonicMs();
      each.state = {
        ...each.state,
        ...(problem !== undefined && {
          firstUnsavedMs: before.firstUnsavedMs ?? each.state.firstUnsavedMs,
          unsavedChanges: before.unsavedChanges + each.state.unsavedChanges,
        }),
        lastEndMs: endMs,
        lastTookMs: endMs - startMs,
        hasFailed: problem !== undefined,
      };
      each.problem = problem ?? null;
      each.savingSinceMs = undefined;
      each.isBusy = false;
    },
    async [Symbol.asyncDispose]() {
      tracked.clear();
      await watcher[Symbol.asyncDispose]();
    },
  };
}

/** Directories that were protected without ever starting an agent. */
export function listProtectedDirectories({ config, effective }: PitContext): LiveMission[] {
  const limits = toSettings(grantedValues(effective.document, effective.file)).live;
  if (limits === null) return [];
  const withAgent = new Set<string>(listAgentMissions(config));
  return listWorktreeRecords(config.missions_root)
    .filter(
      ({ mission_id: mission, released_ms: releasedMs }) => releasedMs === null && !withAgent.has(mission),
    )
    .map(({ mission_id: mission }) => ({ mission: mission as MissionId, agent: null, limits }));
}

/** What changed before the watch began is not known: the first point is taken soon. */
function startTracking({ agent, limits }: LiveMission, monotonicMs: number): Tracked {
  return {
    agent,
    limits,
    state: {
      firstUnsavedMs: monotonicMs,
      lastChangeMs: undefined,
      unsavedChanges: 1,
      isWatched: true,
      lastEndMs: monotonicMs,
      lastTookMs: 0,
      hasFailed: false,
    },
    savingSinceMs: undefined,
    treeChanges: 0,
    hookBytes: 0,
    unwatched: null,
    problem: null,
    isBusy: false,
    written: "",
  };
}

function watchTree(context: PitContext, watcher: TreeWatcher, mission: MissionId, each: Tracked): void {
  try {
    watcher.add(mission, treeOf(context, mission));
  } catch (error) {
    watcher.remove(mission);
    each.unwatched = describeError(error);
  }
}

function treeOf(context: PitContext, mission: MissionId): WatchedTree {
  const cell = context.openMission(mission);
  const outside = outsideWorktree(cell.tree);
  return {
    roots: [
      { path: rootOf(cell.tree), prefix: "" },
      ...(outside === undefined ? [] : [{ path: outside.path, prefix: WORKTREE }]),
    ],
    ignore: [...excludedPatterns(cell), ...OWN_FILES, ...heartbeatFiles(context.config.heartbeat_file)],
  };
}

/** The heartbeat and the temporary files that replace it. */
function heartbeatFiles(file: string): string[] {
  return [`/${file}`, `/${join(dirname(file), `.${basename(file)}.*.tmp`)}`];
}

/** Reads what the watcher and the agent's hooks report: its conversation is part of its work. */
function observe(
  { config, log }: PitContext,
  watcher: TreeWatcher,
  mission: MissionId,
  each: Tracked,
  monotonicMs: number,
): void {
  const tree = watcher.read(mission);
  const hooks = hooksFile(agentPaths(config, mission).directory);
  const treeChanges = tree?.changes ?? 0;
  const hookBytes = sizeOf(hooks);
  const added = Math.abs(treeChanges - each.treeChanges) + (hookBytes === each.hookBytes ? 0 : 1);
  const unwatched = tree === undefined ? each.unwatched : tree.unwatched;
  if (unwatched !== null && unwatched !== each.unwatched)
    log(
      `${mission}: saved every ${each.limits.withinMs / 1000} s, because it cannot be watched: ${unwatched}`,
    );
  Object.assign(each, { treeChanges, hookBytes, unwatched });
  const { state } = each;
  each.state = {
    ...state,
    isWatched: unwatched === null,
    ...(added > 0 && {
      firstUnsavedMs: state.firstUnsavedMs ?? monotonicMs,
      lastChangeMs: monotonicMs,
      unsavedChanges: state.unsavedChanges + added,
    }),
  };
}

/** 0 for a file that does not exist or cannot be examined. */
function sizeOf(file: string): number {
  try {
    return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}

/** Returns why there is no point; undefined when everything is saved. */
async function takePoint(
  context: PitContext,
  mission: MissionId,
  { agent, problem: before }: Tracked,
): Promise<string | undefined> {
  try {
    const result = await takeCheckpoint(context.openMission(mission), {
      reason: "live",
      agent,
      git: "deferred",
      onlyIfChanged: true,
    });
    if (result.finished !== undefined)
      context.log(`${mission}: finished an interrupted restore of ${result.finished.target} first`);
    return undefined;
  } catch (error) {
    const reason = describeError(error);
    // Another command has the vault: the next attempt is soon enough.
    const isBusy = error instanceof LazarusError && error.kind === "busy";
    if (isBusy || reason === before) return reason;
    context.log(`${mission}: no live point: ${reason}`);
    context.recordEvent({ kind: "alert", mission, data: { action: "unsaved", reason } });
    return reason;
  }
}

function removeStatus({ machine, config }: PitContext, mission: MissionId): void {
  try {
    removeLiveStatus(machine, config, mission);
  } catch {
    // As in writeStatus.
  }
}

/** Only when it differs, and at most once between two points while changes go on. */
function writeStatus(context: PitContext, mission: MissionId, each: Tracked, monotonicMs: number): void {
  const sinceMs = each.savingSinceMs ?? each.state.firstUnsavedMs;
  const status: LiveStatus = {
    unsaved_since_ms:
      sinceMs === undefined ? null : Math.round(context.machine.clock.nowMs() - (monotonicMs - sinceMs)),
    unwatched: each.unwatched,
    problem: each.problem,
  };
  const key = JSON.stringify([sinceMs, each.unwatched, each.problem]);
  if (each.written === key) return;
  each.written = key;
  try {
    writeLiveStatus(context.machine, context.config, mission, { ...status, pid: process.pid });
  } catch {
    // A full disk, for example. The status is a hint.
  }
}
