// What the pit keeps in memory about a mission that it protects: what is unsaved and since when, and what the watch and the agent's
// hooks last reported.
import { checkHookLines } from "../../agents/hook-lines.ts";
import { agentDirectory } from "../../cell/fence.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import type { TreeWatcher } from "../watch/tree-watcher.ts";
import type { SetState } from "./capture-set.ts";
import type { LiveLimits, LiveState } from "./live-policy.ts";
import { type LiveStatus, removeLiveStatus, writeLiveStatus } from "./live-status.ts";

/** A mission to protect. */
export interface LiveMission {
  readonly mission: MissionId;
  /** Stored with its points. */
  readonly agent: string | null;
  readonly limits: LiveLimits;
}

export interface Tracked extends Omit<LiveMission, "mission">, SetState {
  state: LiveState;
  /** While a point is being taken: what was unsaved before it. */
  saving: LiveState | undefined;
  /** Changes that the watcher has counted, and size of the reports of hooks, when they were last read. */
  treeChanges: number;
  hookBytes: number;
  /** Why the watcher does not report changes. */
  unwatched: string | null;
  /** Why its reports are no longer trusted. */
  distrusted: string | null;
  /** Why the last attempt failed. */
  problem: string | null;
  isBusy: boolean;
  /** The end of the last capture: the next one starts after it, since its set is complete only if that one succeeded. */
  captured: Promise<unknown>;
  /** The last status that was written. */
  written: string;
}

/** What changed before the watch began is not known: the first point is taken soon. */
export function startTracking({ agent, limits }: LiveMission, monotonicMs: number): Tracked {
  return {
    agent,
    limits,
    base: undefined,
    state: {
      firstUnsavedMs: monotonicMs,
      lastChangeMs: undefined,
      unsavedChanges: 1,
      urgentMs: undefined,
      isWatched: true,
      lastEndMs: monotonicMs,
      lastTookMs: 0,
      hasFailed: false,
      lastAuditMs: monotonicMs,
    },
    saving: undefined,
    treeChanges: 0,
    hookBytes: 0,
    unwatched: null,
    distrusted: null,
    problem: null,
    isBusy: false,
    captured: Promise.resolve(),
    written: "",
  };
}

/** Runs the captures of one mission one at a time. */
export async function afterCapture<T>(each: Tracked, work: () => Promise<T>): Promise<T> {
  const result = each.captured.then(work);
  each.captured = result.catch(() => {});
  return await result;
}

/** The set that was just taken contains everything counted so far; only later changes count as unsaved. */
export function beginSaving(each: Tracked, treeChanges: number | undefined): void {
  each.treeChanges = treeChanges ?? each.treeChanges;
  each.saving = each.state;
  each.state = { ...each.state, firstUnsavedMs: undefined, unsavedChanges: 0, urgentMs: undefined };
}

export function endSaving(each: Tracked, isSaved: boolean): void {
  const before = each.saving;
  each.saving = undefined;
  if (before === undefined || isSaved) return;
  each.state = {
    ...each.state,
    firstUnsavedMs: before.firstUnsavedMs ?? each.state.firstUnsavedMs,
    unsavedChanges: before.unsavedChanges + each.state.unsavedChanges,
    urgentMs: before.urgentMs ?? each.state.urgentMs,
  };
}

/** Reads what the watcher and the agent's hooks report: its conversation is part of its work. */
export function observe(
  { config, log }: PitContext,
  watcher: TreeWatcher,
  mission: MissionId,
  each: Tracked,
  monotonicMs: number,
): void {
  const tree = watcher.read(mission);
  const hooks = checkHookLines(agentDirectory(config, mission), each.hookBytes);
  const treeChanges = tree?.changes ?? each.treeChanges;
  const added = Math.abs(treeChanges - each.treeChanges) + (hooks.bytes === each.hookBytes ? 0 : 1);
  const unwatched = each.distrusted ?? (tree === undefined ? each.unwatched : tree.unwatched);
  if (unwatched !== null && unwatched !== each.unwatched)
    log(`${mission}: saved every ${each.limits.withinMs / 1000} s, not after each change: ${unwatched}`);
  Object.assign(each, { treeChanges, hookBytes: hooks.bytes, unwatched });
  const { state } = each;
  each.state = {
    ...state,
    isWatched: unwatched === null,
    ...(hooks.isUrgent && { urgentMs: state.urgentMs ?? monotonicMs }),
    ...(added > 0 && {
      firstUnsavedMs: state.firstUnsavedMs ?? monotonicMs,
      lastChangeMs: monotonicMs,
      unsavedChanges: state.unsavedChanges + added,
    }),
  };
}

/** A point that is being taken is not late yet. */
const LATE_MS = 2000;

export function removeStatus({ machine, config }: PitContext, mission: MissionId): void {
  try {
    removeLiveStatus(machine, config, mission);
  } catch {
    // As in writeStatus.
  }
}

/** Only when it differs, and rarely while changes continue: their number is written when it has doubled. */
export function writeStatus(
  context: PitContext,
  mission: MissionId,
  each: Tracked,
  monotonicMs: number,
): void {
  const sinceMs = each.saving?.firstUnsavedMs ?? each.state.firstUnsavedMs;
  const changes = (each.saving?.unsavedChanges ?? 0) + each.state.unsavedChanges;
  const isLate = sinceMs !== undefined && monotonicMs - sinceMs > each.limits.withinMs + LATE_MS;
  const status: LiveStatus = {
    unsaved_since_ms:
      sinceMs === undefined ? null : Math.round(context.machine.clock.nowMs() - (monotonicMs - sinceMs)),
    unsaved_changes: changes,
    is_late: isLate,
    unwatched: each.unwatched,
    problem: each.problem,
  };
  const key = JSON.stringify([
    sinceMs,
    Math.ceil(Math.log2(changes + 1)),
    isLate,
    each.unwatched,
    each.problem,
  ]);
  if (each.written === key) return;
  each.written = key;
  try {
    writeLiveStatus(context.machine, context.config, mission, { ...status, pid: process.pid });
  } catch {
    // A full disk, for example. The status is a hint.
  }
}
