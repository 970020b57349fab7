// Live points: checkpoints that the pit takes while an agent works, so that a power cut or a deletion loses seconds, not
// hours (INV-10). live-policy.ts decides when the next one is due, and the supervisor queues it; capture-set.ts takes it from what the
// watch reported. Everything here is a cache: a new pit walks every cell once.
import { readEpoch } from "../../cell/fence.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { listWorktreeRecords } from "../../cell/worktree-record.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { CheckpointOptions, CheckpointResult } from "../../snapshot/operations/checkpoint.ts";
import type { PitContext } from "../context.ts";
import { capture } from "../death/handle-exit.ts";
import { describeError } from "../describe.ts";
import { readRecord } from "../record/store.ts";
import type { Grants } from "../settings.ts";
import type { TreeWatcher } from "../watch/tree-watcher.ts";
import type { Unseen } from "./audit.ts";
import { captureFromSet, type SurveyKind } from "./capture-set.ts";
import { isAuditDue, nextPointMs } from "./live-policy.ts";
import { liveTrees } from "./live-tree.ts";
import {
  afterCapture,
  beginSaving,
  endSaving,
  type LiveMission,
  observe,
  removeStatus,
  startTracking,
  type Tracked,
  writeStatus,
} from "./tracked.ts";

export type { LiveMission } from "./tracked.ts";

/** Changes that audits found and the watch had not reported, since the pit started. */
export interface UnseenCounts {
  readonly missed: number;
  readonly invisible: number;
}

/** Checkpoints of other kinds, from what the pit knows about changes. */
export interface LiveCheckpoints {
  /** Whether a checkpoint of the mission need not walk its cell. */
  isWatched(mission: MissionId): boolean;
  /** Takes a checkpoint: from what changed, if that is known. */
  checkpoint(mission: MissionId, options: CheckpointOptions): Promise<CheckpointResult>;
  readonly unseen: UnseenCounts;
}

export interface LivePoints extends LiveCheckpoints, AsyncDisposable {
  /** Protects exactly these missions. */
  protect(missions: readonly LiveMission[], monotonicMs: number): void;
  /** Reads what changed; returns the missions whose next point is due and is not being taken. */
  due(monotonicMs: number): MissionId[];
  /** Takes a point if anything changed. Never rejects. */
  take(mission: MissionId): Promise<void>;
}

/** How a live point differs from other checkpoints. */
export const LIVE_POINT = { reason: "live", git: "deferred", onlyIfChanged: true } as const;

export function createLivePoints(context: PitContext, watcher: TreeWatcher): LivePoints {
  return new WatchedLivePoints(context, watcher);
}

class WatchedLivePoints implements LivePoints {
  readonly unseen = { missed: 0, invisible: 0 };
  private readonly tracked = new Map<MissionId, Tracked>();
  private readonly context: PitContext;
  private readonly watcher: TreeWatcher;

  constructor(context: PitContext, watcher: TreeWatcher) {
    this.context = context;
    this.watcher = watcher;
  }

  protect(missions: readonly LiveMission[], monotonicMs: number): void {
    const { tracked, context, watcher } = this;
    const names = new Set(missions.map(({ mission }) => mission));
    for (const mission of tracked.keys()) {
      if (names.has(mission)) continue;
      tracked.delete(mission);
      watcher.remove(mission);
      removeStatus(context, mission);
    }
    const treeOf = liveTrees(context);
    for (const each of missions) {
      const known = tracked.get(each.mission);
      if (known === undefined) tracked.set(each.mission, startTracking(each, monotonicMs));
      else Object.assign(known, { agent: each.agent, limits: each.limits });
      this.watch(each.mission, tracked.get(each.mission)!, treeOf);
    }
  }

  due(monotonicMs: number): MissionId[] {
    const due: MissionId[] = [];
    for (const [mission, each] of this.tracked) {
      observe(this.context, this.watcher, mission, each, monotonicMs);
      writeStatus(this.context, mission, each, monotonicMs);
      if (each.isBusy || nextPointMs(each.state, each.limits) > monotonicMs) continue;
      each.isBusy = true;
      due.push(mission);
    }
    return due;
  }

  async take(mission: MissionId): Promise<void> {
    const each = this.tracked.get(mission);
    if (each === undefined) return;
    await afterCapture(each, () => this.takePoint(mission, each));
    each.isBusy = false;
  }

  isWatched(mission: MissionId): boolean {
    const { unwatched, base } = this.tracked.get(mission) ?? { unwatched: "not protected" };
    if (unwatched !== null || base === undefined) return false;
    return this.context
      .openMission(mission)
      .vault.list()
      .some(({ id }) => id === base);
  }

  async checkpoint(mission: MissionId, options: CheckpointOptions): Promise<CheckpointResult> {
    const each = this.tracked.get(mission);
    if (each === undefined) return await capture(this.context, mission, options);
    return await afterCapture(each, async () => {
      let isSaved = false;
      try {
        const { result } = await captureFromSet(this.context, this.watcher, mission, each, {
          ...options,
          // Nothing looks at the cell afterwards.
          survey: options.reason === "departure" || each.unwatched !== null ? "walk" : "linked",
          onTaken: () => this.beginSaving(mission, each),
        });
        isSaved = true;
        each.problem = null;
        each.state = { ...each.state, hasFailed: false };
        return result;
      } finally {
        endSaving(each, isSaved);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.tracked.clear();
    await this.watcher[Symbol.asyncDispose]();
  }

  private watch(mission: MissionId, each: Tracked, treeOf: ReturnType<typeof liveTrees>): void {
    try {
      this.watcher.add(mission, treeOf(mission));
    } catch (error) {
      this.watcher.remove(mission);
      each.unwatched = describeError(error);
    }
  }

  private beginSaving(mission: MissionId, each: Tracked): void {
    beginSaving(each, this.watcher.read(mission)?.changes);
  }

  private async takePoint(mission: MissionId, each: Tracked): Promise<void> {
    const { clock } = this.context.machine;
    const startMs = clock.monotonicMs();
    const isAudit = isAuditDue(each.state, each.limits, startMs);
    each.problem = await this.capturePoint(mission, each, surveyOf(each, isAudit));
    endSaving(each, each.problem === null);
    const endMs = clock.monotonicMs();
    each.state = {
      ...each.state,
      lastEndMs: endMs,
      lastTookMs: endMs - startMs,
      hasFailed: each.problem !== null,
      ...(isAudit && each.problem === null && { lastAuditMs: endMs }),
    };
  }

  /** Returns why there is no point; null when everything is saved. */
  private async capturePoint(mission: MissionId, each: Tracked, survey: SurveyKind): Promise<string | null> {
    const { context, watcher } = this;
    try {
      const onTaken = () => this.beginSaving(mission, each);
      const options = { ...LIVE_POINT, agent: each.agent, survey, onTaken };
      const { unseen } = await captureFromSet(context, watcher, mission, each, options);
      if (unseen !== undefined) this.noteUnseen(mission, each, unseen);
      return null;
    } catch (error) {
      const reason = describeError(error);
      if (isExpected(error) || reason === each.problem) return reason;
      context.log(`${mission}: no live point: ${reason}`);
      context.recordEvent({ kind: "alert", mission, data: { action: "unsaved", reason } });
      return reason;
    }
  }

  /** A watch that missed a change is not trusted again. */
  private noteUnseen(mission: MissionId, each: Tracked, { missed, invisible }: Unseen): void {
    const { context, unseen } = this;
    unseen.invisible += invisible.length;
    unseen.missed += missed.length;
    if (invisible.length > 0)
      context.log(`${mission}: changes that no watch can see, found by the audit: ${listSome(invisible)}`);
    if (missed.length === 0) return;
    each.distrusted = `its watch missed changes, found by the audit: ${listSome(missed)}`;
    context.recordEvent({ kind: "alert", mission, data: { action: "missed", reason: each.distrusted } });
  }
}

function surveyOf({ unwatched }: Tracked, isAudit: boolean): SurveyKind {
  if (unwatched !== null) return "walk";
  return isAudit ? "audit" : "set";
}

/** Another command has locked the vault: the point is taken later. Or the directory was released a moment ago. */
function isExpected(error: unknown): boolean {
  return error instanceof LazarusError && (error.kind === "busy" || error.code === "WORKTREE_RELEASED");
}

const MAX_LISTED = 5;

function listSome(paths: readonly string[]): string {
  const more = paths.length > MAX_LISTED ? ` and ${paths.length - MAX_LISTED} more` : "";
  return `${paths.slice(0, MAX_LISTED).join(", ")}${more}`;
}

/** Directories that stay protected when no agent runs in them. */
export function listProtectedDirectories(context: PitContext): LiveMission[] {
  return listWorktreeRecords(context.config.missions_root)
    .filter(({ released_ms: releasedMs }) => releasedMs === null)
    .flatMap(({ mission_id: mission }) => {
      const record = readGrants(context, mission);
      const limits = record === undefined ? null : context.settings(record).live;
      return limits === null ? [] : { mission: mission as MissionId, agent: null, limits };
    });
}

/** Undefined when what was granted to a mission cannot be read. */
function readGrants({ config }: PitContext, mission: string): Grants | undefined {
  const nothing = { mission, agent: "", settings: {}, revive: null, stall_seconds: null };
  try {
    const record = readRecord(config, mission);
    if (record !== undefined) return record;
    // A lost record may have granted less.
    return readEpoch(config, mission as MissionId) === 0 ? nothing : undefined;
  } catch {
    return undefined;
  }
}
