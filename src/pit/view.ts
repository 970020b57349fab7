// Missions and their agents as plain data, for status, why and the HTTP API. Read-only.
import { readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { agentPaths } from "../cell/agent-paths.ts";
import type { CellStatus } from "../cell/classify.ts";
import type { Config } from "../cell/config.ts";
import { HEARTBEAT_LIMIT_BYTES } from "../cell/heartbeat.ts";
import { pathsBelow } from "../cell/layout.ts";
import { findStoppedKeeper, isKeeperAlive, isLocked, readLife } from "../cell/life.ts";
import { isMissionId, type MissionId } from "../cell/mission-id.ts";
import { reportCell, scanCells } from "../cell/scan.ts";
import { type WorktreeState, worktreeOf, worktreeState } from "../cell/worktree-record.ts";
import type { EffectNote } from "../effects/notes.ts";
import { readFlowPositions } from "../flow/operations/positions.ts";
import { epochSeconds } from "../platform/clock.ts";
import { quietly } from "../platform/errors.ts";
import { readJsonFile } from "../platform/json-file.ts";
import { readLockOwner } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import { posixSupport } from "../platform/posix.ts";
import { readRunPositions } from "../run/store/positions.ts";
import { openVault } from "../snapshot/vault/vault.ts";
import type { ReadContext } from "./context.ts";
import { areHooksSilent, waitsForUser } from "./conversation/observed.ts";
import { type AgentState, describeError, nextAction, stateOf } from "./describe.ts";
import { readEffectFacts } from "./effect-facts.ts";
import { createInactiveLookup } from "./inactive.ts";
import { type LiveStatus, readLiveStatus } from "./live/live-status.ts";
import { agentLog, pitLockFile } from "./paths.ts";
import { isInForeground } from "./record/pending.ts";
import type { MissionRecord } from "./record/record.ts";
import { listAgentMissions, readRecord } from "./record/store.ts";
import { findUnprotected } from "./unprotected.ts";

/** The state of a mission and its agent. */
export interface MissionView {
  readonly mission_id: string;
  readonly root: string;
  /** The agent's files: in the cell, or a directory elsewhere. */
  readonly worktree: string;
  readonly worktree_state: WorktreeState;
  /** The agent's working directory if no checkpoint holds its files; null if one does. */
  readonly unprotected: string | null;
  /** The last life was started with our hooks, but they do not run. */
  readonly silent_hooks: boolean;
  /** It was revived with its conversation, but its CLI takes no prompt then, or refused the note: it continues when its user types something. */
  readonly waits_for_user: boolean;
  readonly cell: CellStatus | "gone";
  readonly state: AgentState;
  readonly agent: string | null;
  readonly command: readonly string[] | null;
  readonly pid: number | null;
  readonly epoch: number | null;
  readonly started_ms: number | null;
  /** Newest of output, the agent's own heartbeat, changes at the top of the worktree, and what live protection saw. */
  readonly last_activity_ms: number | null;
  /** When a flow or run last moved. */
  readonly last_progress_ms: number | null;
  readonly last_checkpoint: {
    readonly id: string;
    readonly created_ms: number;
    readonly reason: string;
  } | null;
  /** Live protection by the pit that runs now; null: there is none. */
  readonly live: LiveStatus | null;
  /** What the mission did after the checkpoint that its cell was last restored to: it is not undone. */
  readonly done_since: readonly EffectNote[];
  readonly revivals_today: number;
  readonly revive: string | null;
  readonly wish: string | null;
  readonly next_action: string;
  readonly record: MissionRecord | null;
  /** Why the record cannot be read. */
  readonly problem: string | null;
}

const DAY_MS = 24 * 3_600_000;

/** Every mission that has a cell or ever had an agent, sorted by name. */
export function viewMissions(context: ReadContext): MissionView[] {
  return [...eachMission(context)];
}

/** One by one: each takes about a millisecond, and a daemon has other work in between. */
export function* eachMission(context: ReadContext): Generator<MissionView> {
  const { machine, config } = context;
  const { cells: found } = scanCells(config, epochSeconds(machine.clock), createInactiveLookup(context));
  const cells = new Map(found.map((cell) => [cell.mission_id, cell]));
  const names = new Set([...[...cells.keys()].filter(isMissionId), ...listAgentMissions(config)]);
  const pitPid = pitOwner(context)?.pid;
  for (const name of [...names].sort())
    yield view(context, name as MissionId, cells.get(name)?.status, pitPid);
}

/** Undefined when the mission has no cell and never had an agent. */
export function viewMission(context: ReadContext, mission: MissionId): MissionView | undefined {
  const { machine, config } = context;
  const cell = reportCell(
    config,
    mission,
    join(config.missions_root, mission),
    epochSeconds(machine.clock),
    createInactiveLookup(context),
  );
  if (cell === undefined && !listAgentMissions(config).includes(mission)) return undefined;
  return view(context, mission, cell?.status, pitOwner(context)?.pid);
}

function view(
  { machine, config }: ReadContext,
  mission: MissionId,
  cell: Exclude<MissionView["cell"], "gone"> | undefined,
  pitPid: number | undefined,
): MissionView {
  const root = join(config.missions_root, mission);
  const nowMs = machine.clock.nowMs();
  let record: MissionRecord | undefined;
  let problem: string | null = null;
  try {
    record = readRecord(config, mission);
  } catch (error) {
    problem = describeError(error);
  }
  const alive = isKeeperAlive(machine.processes, config, mission);
  const stopped = findStoppedKeeper(machine.processes, config, mission);
  if (alive && record === undefined) problem ??= "an agent is running, but its record is missing";
  else if (stopped !== undefined)
    problem ??= `the agent has exited, but its keeper (process ${stopped.pid}) is stopped and cannot record how`;
  const life = alive && stopped === undefined ? readLife(config, mission) : undefined;
  const state = stateOf(record, alive && stopped === undefined);
  // A record without a life has only settings.
  const agent = record?.life == null ? undefined : record;
  const place = worktreeState(root);
  // The status of a mission whose agent has just ended stays until the pit looks at it again.
  const isWatched = pitPid !== undefined && (alive || place === "in-place");
  const live = (isWatched ? readLiveStatus(config, mission, pitPid) : undefined) ?? null;
  const checkpoint = lastCheckpoint(machine, config, mission);
  return {
    mission_id: mission,
    root,
    worktree: worktreeOf(root),
    worktree_state: place,
    unprotected: findUnprotected(config, mission, record?.cwd ?? null),
    silent_hooks: record !== undefined && areHooksSilent(config, record),
    waits_for_user: state === "running" && record !== undefined && waitsForUser(config, record),
    cell: cell ?? "gone",
    state,
    agent: agent?.agent ?? null,
    command: agent?.command ?? null,
    pid: life?.agent.pid ?? null,
    epoch: record?.life?.epoch ?? null,
    started_ms: record?.life?.started_ms ?? null,
    last_activity_ms: Math.max(lastActivityMs(config, root, nowMs), lastChangeMs(live, checkpoint)) || null,
    last_progress_ms: lastProgressMs(root) || null,
    last_checkpoint: checkpoint,
    live,
    done_since: readEffectFacts(machine, root).doneSince,
    revivals_today: [...(record?.revivals_ms ?? []), ...(record?.retries_ms ?? [])].filter(
      (ms) => nowMs - ms < DAY_MS,
    ).length,
    revive: record?.revive ?? null,
    wish: agent?.wish ?? null,
    next_action:
      problem === null
        ? nextAction(record, state, nowMs, pitPid !== undefined || isInForeground(machine.processes, record))
        : "for details: lazarus why",
    record: record === undefined ? null : redactEnvironment(record),
    problem,
  };
}

/** An agent's environment can contain secrets (INV-7): names are shown, values are not. */
function redactEnvironment(record: MissionRecord): MissionRecord {
  const names = Object.keys(record.env ?? {}).map((name) => [name, "[not shown]"] as const);
  return { ...record, env: Object.fromEntries(names) };
}

/** The pit that runs for this home; undefined when none does. */
export function pitOwner({
  machine,
  config,
}: ReadContext): { readonly pid: number; readonly since: number } | undefined {
  const owner = readLockOwner(pitLockFile(config.run_dir));
  if (owner === undefined || owner.host !== machine.processes.hostName()) return undefined;
  if (machine.processes.identify(owner.pid) === undefined) return undefined;
  // The file still names a killed pit, and its pid may have been reused.
  return posixSupport().ok && !isLocked(pitLockFile(config.run_dir)) ? undefined : owner;
}

/** Only what is cheap to read: log, the agent's own heartbeat, top of the worktree. 0 when there is none. */
function lastActivityMs(config: Config, cellRoot: string, nowMs: number): number {
  const worktree = worktreeOf(cellRoot);
  const times = [
    modifiedMs(agentLog(cellRoot)),
    ownHeartbeatMs(config, cellRoot),
    modifiedMs(worktree),
    modifiedMs(join(worktree, ".git", "index")),
  ];
  // The agent can set these to any time.
  return Math.max(0, ...times.filter((ms) => ms <= nowMs + CLOCK_SKEW_MS));
}

/** How far the clock of a file system on another machine may differ. */
const CLOCK_SKEW_MS = 60_000;

/** A heartbeat that the keeper wrote shows that the process exists, not that the agent is active. 0 when there is none. */
export function ownHeartbeatMs(config: Config, cellRoot: string): number {
  const reading = readJsonFile(pathsBelow(config, cellRoot).heartbeatFile, HEARTBEAT_LIMIT_BYTES);
  const timestamp = reading.ok ? reading.value.timestamp : undefined;
  const keeperBeat = readKeeperBeat(agentPaths(config, basename(cellRoot)).beat);
  return typeof timestamp === "number" && timestamp !== keeperBeat ? timestamp * 1000 : 0;
}

function readKeeperBeat(path: string): number | undefined {
  return quietly(() => Number(readFileSync(path, "latin1")));
}

/** When a flow or run last moved; 0 when there is none. */
function lastProgressMs(cellRoot: string): number {
  return Math.max(0, ...progressTimes(cellRoot));
}

/** When each flow and run last moved. */
export function progressTimes(cellRoot: string): number[] {
  const flows = readFlowPositions(cellRoot).map(({ updatedAt }) => Date.parse(updatedAt));
  const runs = readRunPositions(cellRoot).map(({ updatedAtMs }) => updatedAtMs);
  return [...flows, ...runs].filter(Number.isFinite);
}

/** A live point is taken only after a change; files that are overwritten change no directory above them. 0 when there is none. */
function lastChangeMs(live: LiveStatus | null, checkpoint: MissionView["last_checkpoint"]): number {
  return Math.max(live?.unsaved_since_ms ?? 0, checkpoint?.reason === "live" ? checkpoint.created_ms : 0);
}

function lastCheckpoint(
  machine: Machine,
  config: Config,
  mission: MissionId,
): MissionView["last_checkpoint"] {
  const newest = quietly(() => openVault(machine, config.vault_root, mission).list().at(-1));
  return newest ? { id: newest.id, created_ms: newest.createdAtMs, reason: newest.reason } : null;
}

function modifiedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
