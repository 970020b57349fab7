// Executes what due-actions.ts finds due, every tick. Work on one mission runs one task at a time, and no mission waits for
// another: only checkpoints and starts are limited, by slots that are lost when held for too long
// (src/snapshot/slots.ts). What a supervisor holds in memory is a cache or a timer: all decisions are on disk.
import { beatJob } from "../../cell/job.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { keepReserve } from "../../platform/reserve.ts";
import type { ServiceNotify } from "../../service/notify.ts";
import type { PitContext } from "../context.ts";
import { applyKeeperStep } from "../death/finish-keeper.ts";
import { describeError } from "../describe.ts";
import {
  createLivePoints,
  type LiveMission,
  type LivePoints,
  listProtectedDirectories,
} from "../live/live-points.ts";
import { RESERVE_BYTES, reserveFile, watchDirectory } from "../paths.ts";
import { listAgentMissions } from "../record/store.ts";
import { openTreeWatcher } from "../watch/tree-watcher.ts";
import { checkMission, killStalled } from "./check-mission.ts";
import { type Action, type AgentTimers, dueActions, type PeriodicTask } from "./due-actions.ts";
import {
  checkStall,
  createChangeDetector,
  createSettingsCache,
  type SettingsCache,
} from "./periodic-checks.ts";
import { findNewSilences } from "./silence.ts";
import { type Reading, restartClocks, stallCheckEveryMs } from "./stall.ts";
import { createTaskQueue, type TaskQueue } from "./task-queue.ts";
import { createWatchList, type WatchList } from "./watch-list.ts";

export interface Supervisor {
  readonly context: PitContext;
  readonly watchList: WatchList;
  readonly settings: SettingsCache;
  readonly queue: TaskQueue<MissionId>;
  readonly live: LivePoints;
  /** Directories that are protected without an agent, as of the last rescan. */
  directories: readonly LiveMission[];
  /** Missions whose agent has ended and may have changes that no checkpoint holds, until that end is handled. */
  readonly ending: Map<MissionId, LiveMission>;
  /** Why they could not be listed, as it was logged. */
  directoriesProblem: string | undefined;
  /** The missions that were last protected, in comparable form. */
  protectedKey: string;
  /** When to check a mission again, by the wall clock. */
  readonly nextChecksMs: Map<MissionId, number>;
  /** What was logged about a mission since its last success, and the number of retries. */
  readonly problems: Map<MissionId, { readonly reasons: Set<string>; readonly retries: number }>;
  /** Whether a mission's record has changed since this was last called. */
  hasChanged(mission: MissionId): boolean;
  /** When the host last woke from sleep. */
  sleptUntilMs: number | undefined;
  stopping: boolean;
}

export const RESCAN_MS = 5000;
/** How often to check whether a live point is due, and the timers of agents. */
const LIVE_MS = 250;
/** The first retry is soon: a full disk is often free again after a moment. */
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;

export function createSupervisor(context: PitContext): Supervisor {
  const supervisor: Supervisor = {
    context,
    watchList: createWatchList(context.machine.processes),
    settings: createSettingsCache(context),
    queue: createTaskQueue<MissionId>((mission) => checkNow(supervisor, mission)),
    live: createLivePoints(context, openTreeWatcher({ cookies: watchDirectory(context.config) })),
    directories: [],
    directoriesProblem: undefined,
    ending: new Map(),
    protectedKey: "",
    nextChecksMs: new Map(),
    problems: new Map(),
    hasChanged: createChangeDetector(context),
    sleptUntilMs: undefined,
    stopping: false,
  };
  return supervisor;
}

export function closeSupervisor(supervisor: Supervisor): void {
  supervisor.stopping = true;
  supervisor.watchList.clear();
  void supervisor.live[Symbol.asyncDispose]();
}

/** Queues a check of a mission. */
export function queueCheck({ queue, stopping }: Supervisor, mission: MissionId): void {
  if (!stopping) queue.add(mission);
}

async function checkNow(supervisor: Supervisor, mission: MissionId): Promise<void> {
  const { context, watchList, settings, nextChecksMs, problems, sleptUntilMs, live, ending } = supervisor;
  nextChecksMs.delete(mission);
  settings.forget(mission);
  findDirectories(supervisor);
  await reportProblems(supervisor, mission, async () => {
    const isStopping = () => supervisor.stopping;
    const takeCheckpoint: PitContext["takeCheckpoint"] = (...checkpoint) => live.checkpoint(...checkpoint);
    const options = { watchList, takeCheckpoint, sleptUntilMs, isStopping };
    const atMs = await checkMission(context, mission, options);
    if (atMs === undefined) ending.delete(mission);
    else nextChecksMs.set(mission, atMs);
    problems.delete(mission);
  });
}

/** Logs each problem once, keeps retrying. */
async function reportProblems(
  { context, problems, nextChecksMs }: Supervisor,
  mission: MissionId,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    const reason = describeError(error);
    const { reasons, retries } = problems.get(mission) ?? { reasons: new Set<string>(), retries: 0 };
    if (!reasons.has(reason)) {
      context.log(`${mission}: ${reason}`);
      context.recordEvent({ kind: "alert", mission, data: { action: "trouble", reason } });
    }
    problems.set(mission, { reasons: reasons.add(reason), retries: retries + 1 });
    const retryMs = Math.min(FIRST_RETRY_MS * 2 ** retries, MAX_RETRY_MS);
    nextChecksMs.set(mission, context.machine.clock.nowMs() + retryMs);
  }
}

export function createTick(supervisor: Supervisor, notify: ServiceNotify): () => void {
  const { watchList, nextChecksMs } = supervisor;
  const { machine, config } = supervisor.context;
  const read = (): Reading => ({ wallMs: machine.clock.nowMs(), monotonicMs: machine.clock.monotonicMs() });
  const intervalsMs: Record<PeriodicTask, number | undefined> = {
    heartbeat: config.heartbeat_interval_seconds * 1000,
    watchdog: notify.watchdogMs,
    rescan: RESCAN_MS,
    "check-silence": config.heartbeat_interval_seconds * 1000,
    "live-points": LIVE_MS,
  };
  findDirectories(supervisor);
  let lastTick = read();
  const lastRunMs: Record<PeriodicTask, number> = {
    heartbeat: Number.NEGATIVE_INFINITY,
    watchdog: 0,
    rescan: lastTick.monotonicMs,
    "check-silence": Number.NEGATIVE_INFINITY,
    "live-points": Number.NEGATIVE_INFINITY,
  };
  return () => {
    const now = read();
    const ended = watchList.ended(now.monotonicMs);
    for (const mission of ended) {
      const known = liveMission(supervisor, mission, now.monotonicMs);
      if (known !== undefined) supervisor.ending.set(mission, known);
      watchList.remove(mission);
    }
    finishKeepers(supervisor, now.monotonicMs);
    const checksTimers = now.monotonicMs - lastRunMs["live-points"] >= LIVE_MS;
    const agents = checksTimers ? listTimers(supervisor, now.monotonicMs) : [];
    const actions = dueActions({ lastTick, intervalsMs, lastRunMs, ended, nextChecksMs, agents }, now);
    lastTick = now;
    for (const action of actions) {
      if (action.kind in lastRunMs) lastRunMs[action.kind as PeriodicTask] = now.monotonicMs;
      execute(supervisor, action, now, notify);
    }
  };
}

/** Finishes the keepers of agents that have exited; they are usually gone by the next tick. */
function finishKeepers({ context, watchList, settings }: Supervisor, monotonicMs: number): void {
  for (const { mission, life, exitedMs } of watchList.all()) {
    if (exitedMs === undefined) continue;
    const leftoverGraceMs = settings.get(mission, monotonicMs)?.leftoverGraceMs ?? 0;
    applyKeeperStep(context.machine.processes, life, { elapsedMs: monotonicMs - exitedMs, leftoverGraceMs });
  }
}

function listTimers({ watchList, settings }: Supervisor, monotonicMs: number): AgentTimers[] {
  return [...watchList.all()].map(({ mission, checkpointedMs, stallCheckedMs }) => {
    const known = settings.get(mission, monotonicMs);
    const everySeconds = known?.checkpointEverySeconds ?? null;
    return {
      mission,
      checkpointedMs,
      checkpointEveryMs: everySeconds === null ? null : everySeconds * 1000,
      stallCheckedMs,
      stallCheckEveryMs: known && stallCheckEveryMs(known.stall),
    };
  });
}

function execute(supervisor: Supervisor, action: Action, now: Reading, notify: ServiceNotify): void {
  switch (action.kind) {
    case "restart-timeouts":
      restartTimeouts(supervisor, action.sleptMs, now);
      break;
    case "check-mission":
      queueCheck(supervisor, action.mission);
      break;
    case "heartbeat": {
      const { error } = beat(supervisor.context);
      if (error !== undefined) supervisor.context.log(error.message);
      break;
    }
    case "watchdog":
      notify.send("WATCHDOG=1");
      break;
    case "rescan":
      rescan(supervisor);
      break;
    case "check-silence":
      reportSilence(supervisor);
      break;
    case "live-points":
      takeLivePoints(supervisor, now.monotonicMs);
      break;
    case "check-stall":
      checkStallOf(supervisor, action.mission, now.monotonicMs);
      break;
    case "checkpoint":
      takeScheduledCheckpoint(supervisor, action.mission, now.monotonicMs);
      break;
  }
}

function restartTimeouts(supervisor: Supervisor, sleptMs: number, now: Reading): void {
  supervisor.sleptUntilMs = now.wallMs;
  const seconds = Math.round(sleptMs / 1000);
  supervisor.context.log(`the host slept for ${seconds} s, or its clock was set: all timeouts restarted`);
  for (const agent of supervisor.watchList.all())
    agent.clocks = agent.clocks && restartClocks(agent.clocks, now.monotonicMs);
}

export function beat({ machine, config }: PitContext, status?: "stopped") {
  return beatJob(machine, config, config.heartbeat_job, {
    intervalSeconds: config.heartbeat_interval_seconds,
    ...(status === undefined ? {} : { status }),
  });
}

/** Finds what wake files and process descriptors missed, and changed settings. */
function rescan(supervisor: Supervisor): void {
  const { machine, config } = supervisor.context;
  keepReserve(machine.disk, reserveFile(config), RESERVE_BYTES);
  const { watchList, nextChecksMs } = supervisor;
  reloadSettings(supervisor);
  findDirectories(supervisor);
  // A worktree may have moved.
  supervisor.protectedKey = "";
  for (const mission of listAgentMissions(supervisor.context.config))
    if (watchList.get(mission) === undefined && !nextChecksMs.has(mission) && supervisor.hasChanged(mission))
      queueCheck(supervisor, mission);
}

function checkStallOf(supervisor: Supervisor, mission: MissionId, monotonicMs: number): void {
  const { context, watchList, queue } = supervisor;
  const agent = watchList.get(mission);
  const known = supervisor.settings.get(mission, monotonicMs);
  if (agent === undefined || known === undefined) return;
  agent.stallCheckedMs = monotonicMs;
  const reason = known.shouldRun ? checkStall(context, agent, known.stall, monotonicMs) : undefined;
  if (known.shouldRun && reason === undefined) return;
  agent.clocks = undefined;
  if (reason === undefined) return;
  const kill = async () => {
    await killStalled(context, mission, reason);
    queueCheck(supervisor, mission);
  };
  queue.addWork(mission, () => reportProblems(supervisor, mission, kill));
}

/** Alerts about cells whose heartbeats have stopped, and takes a checkpoint of each. */
function reportSilence(supervisor: Supervisor): void {
  const { context, queue, live } = supervisor;
  try {
    for (const { mission, reason } of findNewSilences(context)) {
      context.log(`${mission}: ${reason}`);
      context.recordEvent({ kind: "alert", mission, data: { action: "silent", reason } });
      const checkpoint = () => live.checkpoint(mission, { reason: "crash", message: reason, agent: null });
      queue.addWork(mission, () => reportProblems(supervisor, mission, checkpoint));
    }
  } catch (error) {
    context.log(`cannot check the heartbeats of cells: ${describeError(error)}`);
  }
}

function takeScheduledCheckpoint(supervisor: Supervisor, mission: MissionId, monotonicMs: number): void {
  const { live, watchList, queue } = supervisor;
  const agent = watchList.get(mission);
  if (agent === undefined) return;
  agent.checkpointedMs = monotonicMs;
  const name = supervisor.settings.get(mission, monotonicMs)?.agent ?? null;
  const checkpoint = () => live.checkpoint(mission, { reason: "scheduled", message: null, agent: name });
  queue.addWork(mission, () => reportProblems(supervisor, mission, checkpoint));
}

/** Without a list, the directories that were protected so far stay protected. */
function findDirectories(supervisor: Supervisor): void {
  const { context } = supervisor;
  try {
    supervisor.directories = listProtectedDirectories(context);
    supervisor.directoriesProblem = undefined;
  } catch (error) {
    const reason = describeError(error);
    if (reason !== supervisor.directoriesProblem)
      context.log(`cannot list the protected directories: ${reason}`);
    supervisor.directoriesProblem = reason;
  }
}

/** Rereads the config, so that live points exclude and keep what it says now. */
function reloadSettings({ context, watchList, settings }: Supervisor): void {
  if (!context.reloadConfig()) return;
  for (const { mission } of watchList.all()) settings.forget(mission);
}

function takeLivePoints(supervisor: Supervisor, monotonicMs: number): void {
  const { live, queue } = supervisor;
  const missions = listLiveMissions(supervisor, monotonicMs);
  const key = JSON.stringify(missions);
  if (key !== supervisor.protectedKey) {
    live.protect(missions, monotonicMs);
    supervisor.protectedKey = key;
  }
  for (const mission of live.due(monotonicMs)) queue.addWork(mission, () => live.take(mission));
}

/** Missions with an agent that runs or has just ended, and directories that are protected without one. */
function listLiveMissions(supervisor: Supervisor, monotonicMs: number): LiveMission[] {
  const { watchList, ending, directories } = supervisor;
  const running = [...watchList.all()].flatMap(
    ({ mission }) => liveMission(supervisor, mission, monotonicMs) ?? [],
  );
  const all = [...directories, ...ending.values(), ...running];
  return [...new Map(all.map((each) => [each.mission, each])).values()];
}

/** Undefined when the mission takes no live points. */
function liveMission(
  { settings }: Supervisor,
  mission: MissionId,
  monotonicMs: number,
): LiveMission | undefined {
  const known = settings.get(mission, monotonicMs);
  return known?.live ? { mission, agent: known.agent, limits: known.live } : undefined;
}
