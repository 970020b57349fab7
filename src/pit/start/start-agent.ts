// Starts one life of an agent. The order of the lines is the promise (INV-4): life lock → epoch → record → keeper. The
// keeper inherits the life lock, so the kernel itself lets no second keeper begin while one lives, also when whoever
// started it is killed half-way.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, makeDirectory, sweepTemporaries } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type Lock, tryAcquireLock } from "../../platform/lock.ts";
import { workerUrl } from "../../platform/worker-module.ts";
import type { PitContext } from "../context.ts";
import { countOomKills } from "../death/oom.ts";
import { findKeepers, sightProcesses } from "../death/orphans.ts";
import { pitSocketFile } from "../paths.ts";
import { beginLife, type MissionRecord, type RecordedLife } from "../record/record.ts";
import { agentPlaces, raiseEpoch, writeRecord } from "../record/store.ts";
import { KEEPER_SCRIPT, keeperArguments } from "./keeper-script.ts";
import { type Exit, type Life, readExit, readLife } from "./life.ts";

export interface StartRequest {
  readonly how: RecordedLife["how"];
  readonly command: readonly string[];
  /** In the foreground the agent has the caller's terminal, and the caller waits for it. */
  readonly foreground?: boolean;
  /** Done between the fence and the start, with the new epoch: nothing of an earlier life can write any more. */
  prepare?(epoch: number): Promise<void> | void;
}

export interface Started {
  readonly record: MissionRecord;
  readonly epoch: number;
  /** Undefined when it ended before it could say who it was. */
  readonly life: Life | undefined;
  /** Resolves when the keeper has ended; only for the foreground. */
  readonly ended: Promise<void>;
}

const START_WAIT_MS = 15_000;
const LOOK_MS = 5;
/** For so long the life lock may be held by someone who only looks at it. */
const LOOKER_MS = 200;
/** Between two looks at the whole process table. */
const TABLE_MS = 100;

/** Only under the mission's lock. */
export async function startAgent(
  context: PitContext,
  record: MissionRecord,
  request: StartRequest,
): Promise<Started> {
  const { machine, config } = context;
  const mission = parseMissionId(record.mission);
  const places = agentPlaces(config, mission);
  makeDirectory(machine.disk, places.directory);
  // A lock that someone removed is still held, and says nothing any more: then the process table is asked.
  if (!existsSync(places.lifeLock) && findKeepers(places.directory).length > 0)
    throw atWork(mission, readLife(config, mission));
  using lifeLock = await takeLifeLock(context, mission, places.lifeLock);
  const obstacle = findObstacle(context, record);
  if (obstacle !== undefined) throw notStarted(mission, obstacle.says, obstacle.hint);
  // What killed keepers and pits left half-written; a zombie writes nothing more.
  const writes = (pid: number) => machine.processes.identify(pid) !== undefined;
  for (const directory of [places.directory, dirname(cellPaths(config, mission).heartbeatFile)])
    if (existsSync(directory)) sweepTemporaries(machine.disk, directory, writes);
  const epoch = raiseEpoch(machine, config, mission);
  crashPoint("pit.start.fenced");
  await request.prepare?.(epoch);
  const begun = beginLife(record, {
    epoch,
    started_ms: machine.clock.nowMs(),
    how: request.how,
    command: request.command,
    oom_kills: countOomKills(),
    log_bytes: statSync(agentLog(cellPaths(config, mission).root), { throwIfNoEntry: false })?.size ?? 0,
  });
  writeRecord(machine, config, begun);
  crashPoint("pit.start.recorded");
  const child = spawnKeeper(context, begun, request, epoch, lifeLock);
  crashPoint("pit.start.spawned");
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  let over = false;
  void ended.then(() => {
    over = true;
  });
  const deadlineMs = machine.clock.monotonicMs() + START_WAIT_MS;
  for (;;) {
    const life = readLife(config, mission);
    if (life?.epoch === epoch) return { record: begun, epoch, life, ended };
    if (over) return { record: begun, epoch, life: undefined, ended };
    if (machine.clock.monotonicMs() > deadlineMs) throw notStarted(mission, "its keeper does not answer");
    await machine.clock.sleep(LOOK_MS);
  }
}

export interface Obstacle {
  readonly says: string;
  readonly hint: string;
}

/** Why nothing can be started however much it is wanted; undefined when nothing stands in the way. */
export function findObstacle({ config }: PitContext, record: MissionRecord): Obstacle | undefined {
  const { mission } = record;
  const cell = cellPaths(config, parseMissionId(mission));
  const restore = `lazarus restore ${mission}, then: lazarus revive ${mission}`;
  if (!existsSync(cell.root)) return { says: `its cell ${cell.root} is gone`, hint: restore };
  const directory = record.cwd ?? cell.worktree;
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  return {
    says: `there is no directory ${directory} to work in`,
    hint: record.cwd === null ? restore : `mkdir -p ${directory}, then: lazarus revive ${mission}`,
  };
}

async function takeLifeLock(context: PitContext, mission: string, path: string): Promise<Lock> {
  const { clock } = context.machine;
  const begunMs = clock.monotonicMs();
  for (;;) {
    const lock = tryAcquireLock(context.machine, path, `life of ${mission}`);
    if (lock !== undefined) return lock;
    const waitedMs = clock.monotonicMs() - begunMs;
    // Where the process table shows no keeper, the holder is still someone who looks, on a machine that is busy.
    if (waitedMs > START_WAIT_MS || (waitedMs > LOOKER_MS && mayHaveKeeper(dirname(path))))
      throw atWork(mission, readLife(context.config, mission));
    await clock.sleep(waitedMs > LOOKER_MS ? TABLE_MS : LOOK_MS);
  }
}

function mayHaveKeeper(agentDirectory: string): boolean {
  const seen = sightProcesses();
  return seen.length === 0 || findKeepers(agentDirectory, seen).length > 0;
}

function atWork(mission: string, life: Life | undefined): LazarusError {
  return new LazarusError(
    "AGENT_RUNNING",
    `an agent of ${mission} is at work already${life === undefined ? "" : ` (process ${life.agent.pid})`}`,
    { hint: `lazarus status ${mission}, or end it with: lazarus stop ${mission}` },
  );
}

function spawnKeeper(
  context: PitContext,
  record: MissionRecord,
  request: StartRequest,
  epoch: number,
  lifeLock: Lock,
) {
  const { config, machine } = context;
  const mission = parseMissionId(record.mission);
  const cell = cellPaths(config, mission);
  const settings = context.settings(mission, record.agent);
  makeDirectory(machine.disk, join(cell.root, "logs"));
  const values = keeperArguments(
    {
      directory: agentPlaces(config, mission).directory,
      epoch,
      // Filled in by the launcher, which becomes the keeper.
      keeperStart: "",
      bootId: "",
      mission,
      cell: cell.root,
      workingDirectory: record.cwd ?? cell.worktree,
      log: request.foreground ? "" : agentLog(cell.root),
      logLimitBytes: settings.logLimitBytes,
      logCount: settings.logCount,
      heartbeatFile: cell.heartbeatFile,
      heartbeatSeconds: config.heartbeat_interval_seconds,
      leftoverGraceSeconds: settings.leftoverGraceSeconds,
    },
    request.command,
  );
  const launcher = workerUrl("keeper-launch", import.meta.url).pathname;
  const streams = request.foreground ? "inherit" : "ignore";
  const child = spawn(
    process.execPath,
    ["--no-warnings", decodeURIComponent(launcher), storeScript(context), ...values],
    {
      cwd: config.run_dir,
      detached: !request.foreground,
      stdio: [streams, streams, streams, lifeLock.fd],
      env: agentEnvironment(context, record, mission),
    },
  );
  if (!request.foreground) child.unref();
  return child;
}

/** What an agent prints, within its cell. */
export function agentLog(cellRoot: string): string {
  return join(cellRoot, "logs", "agent.log");
}

/** The starter's environment and what the mission adds; marks of a life that the starter itself belongs to are taken off. */
function agentEnvironment(
  context: PitContext,
  record: MissionRecord,
  mission: string,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [key, value] of Object.entries({ ...context.environment, ...record.env })) {
    if (value !== undefined) env[key] = value;
  }
  for (const key of [
    "LAZARUS_MISSION",
    "LAZARUS_CELL",
    "LAZARUS_EPOCH",
    "LAZARUS_HEARTBEAT",
    "NOTIFY_SOCKET",
  ])
    delete env[key];
  // So that the agent's own `lazarus heartbeat` finds the same places from whatever directory it calls.
  if (context.effective.file !== undefined) env.LAZARUS_CONFIG = context.effective.file;
  if (context.home !== undefined) env.LAZARUS_HOME = context.home;
  // For heartbeats over HTTP without a token: the socket is the same for every pit to come.
  env.LAZARUS_SOCKET = pitSocketFile(context.config.run_dir);
  env.LAZARUS_HEARTBEAT_URL = `http://localhost/v1/missions/${mission}/heartbeat`;
  return env;
}

/** The script under its own digest: never changed under a shell that reads it. */
function storeScript({ machine, config }: PitContext): string {
  const digest = createHash("sha256").update(KEEPER_SCRIPT).digest("hex").slice(0, 12);
  const path = join(config.run_dir, `keeper-${digest}.sh`);
  if (!existsSync(path)) createFile(machine.disk, path, KEEPER_SCRIPT);
  return path;
}

function notStarted(mission: string, why: string, hint = `lazarus why ${mission}`): LazarusError {
  return new LazarusError("AGENT_NOT_STARTED", `the agent of ${mission} was not started: ${why}`, { hint });
}

/** The exit that belongs to a life, when its keeper wrote one. */
export function exitOf(context: PitContext, mission: string, epoch: number): Exit | undefined {
  const exit = readExit(context.config, mission);
  return exit?.epoch === epoch ? exit : undefined;
}
