// Starts one life of an agent. Write order matters (INV-4): life lock, interrupted restore, epoch, environment, record,
// keeper. The keeper inherits the life lock, so the kernel prevents a second keeper while one lives, even when the starter
// is killed half-way.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { findKeepers, isKeeperAlive, type Life, readLife, readLifeOf } from "../../cell/life.ts";
import { type MissionId, parseMissionId } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, makeDirectory, sweepTemporaries } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type Lock, tryAcquireLock } from "../../platform/lock.ts";
import { finishRestore } from "../../snapshot/operations/lock.ts";
import { noteStatus, type PitContext } from "../context.ts";
import { agentLog } from "../paths.ts";
import { createCgroup } from "../processes/cgroup.ts";
import { countOomKills } from "../processes/oom.ts";
import type { LifeConversation } from "../record/conversation.ts";
import { type Environment, writeEnvironment } from "../record/environment.ts";
import { beginLife, type MissionRecord, type RecordedLife } from "../record/record.ts";
import { fenceEarlierLives, writeRecord } from "../record/store.ts";
import type { PitSettings } from "../settings.ts";
import { terminalHostFile } from "../terminal/pty.ts";
import { readTerminalSize } from "../terminal/size.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { findObstacle } from "./find-obstacle.ts";
import { keeperArguments, readKeeperScript } from "./keeper-arguments.ts";
import { chooseLauncher } from "./launcher.ts";

export interface StartRequest {
  readonly how: RecordedLife["how"];
  /** The agent gets the caller's terminal, and the caller waits for it. */
  readonly foreground?: boolean;
  /** The environment of a life that a user starts, to be kept for later lives; null: nothing is kept. */
  readonly environment?: Environment | null;
  /** Runs between fence and start, when no earlier life can write any more. */
  prepare(epoch: number, environment: Readonly<Record<string, string>>): Promise<Prepared> | Prepared;
}

export interface Prepared {
  readonly command: readonly string[];
  /** What the user should know about the choice of the command. */
  readonly note?: string;
  /** Variables that the agent's adapter adds. */
  readonly env?: Readonly<Record<string, string>>;
  readonly conversation?: LifeConversation;
}

export interface Started {
  readonly record: MissionRecord;
  readonly epoch: number;
  /** Undefined when the keeper ended before it had written life.json. */
  readonly life: Life | undefined;
  /** Resolves when the keeper has ended; only for the foreground. */
  readonly ended: Promise<void>;
}

const START_WAIT_MS = 15_000;
const POLL_MS = 5;
const TOKEN_BYTES = 16;
/** A process that only tests the life lock holds it for less than this. */
const LOCK_TEST_MS = 200;
/** Reading the whole process table is expensive. */
const TABLE_POLL_MS = 100;

/** The caller holds the mission's lock. */
export async function startAgent(
  context: PitContext,
  record: MissionRecord,
  request: StartRequest,
): Promise<Started> {
  const { machine, config } = context;
  const mission = parseMissionId(record.mission);
  const cell = cellPaths(config, mission);
  const paths = agentPaths(config, mission);
  makeDirectory(machine.disk, paths.directory);
  // A lock file that was deleted may still be held. Where life.json is lost too, look for a keeper in the process table.
  const previous = readLife(config, mission);
  if (
    isKeeperAlive(machine.processes, config, mission) ||
    (previous === undefined && findKeepers(config, mission).length > 0)
  )
    throw alreadyRunning(mission, previous);
  using lifeLock = await acquireLifeLock(context, mission, paths.lifeLock);
  await completeCell(context, mission);
  crashPoint("pit.start.cell-complete");
  const obstacle = findObstacle(config, record);
  if (obstacle !== undefined) throw notStarted(mission, obstacle.reason, obstacle.hint);
  // Errors in the settings or the environment are found before the epoch is raised.
  const settings = context.settings(record);
  const env = agentEnvironment(context, record, request.environment);
  // Temporary files of killed keepers and pits; a zombie writes nothing more.
  const isWriter = (pid: number) => machine.processes.identify(pid) !== undefined;
  for (const directory of [paths.directory, dirname(cell.heartbeatFile)])
    if (existsSync(directory)) sweepTemporaries(machine.disk, directory, isWriter);
  const epoch = fenceEarlierLives(machine, config, mission);
  crashPoint("pit.start.fenced");
  const { command, note, conversation, env: added } = await request.prepare(epoch, env);
  const token = Buffer.from(machine.ids.bytes(TOKEN_BYTES)).toString("hex");
  const begun = beginLife(record, {
    epoch,
    started_ms: machine.clock.nowMs(),
    how: request.how,
    command,
    oom_kills: countOomKills(),
    log_bytes: statSync(agentLog(cell.root), { throwIfNoEntry: false })?.size ?? 0,
    ...(note === undefined ? {} : { note }),
    ...(conversation === undefined ? {} : { conversation }),
    token,
    cgroup: createCgroup(token) ?? null,
    foreground: request.foreground ? machine.processes.self() : null,
  });
  if (request.environment !== undefined) writeEnvironment(machine, config, mission, request.environment);
  crashPoint("pit.start.environment");
  writeRecord(machine, config, begun);
  crashPoint("pit.start.recorded");
  noteStatus(context, mission, "running", `life ${epoch} started (${request.how})`);
  using _ = await context.startSlots.acquire();
  const keeper = spawnKeeper(context, begun, {
    foreground: request.foreground === true,
    lifeLock,
    settings,
    env: { ...env, ...added },
  });
  crashPoint("pit.start.spawned");
  return await waitForLife(context, begun, keeper);
}

/** A restore that was killed half-way is finished before an agent works in the cell. */
async function completeCell(context: PitContext, mission: MissionId): Promise<void> {
  const finished = await finishRestore(context.openMission(mission));
  if (finished === undefined) return;
  context.log(`${mission}: finished an interrupted restore of ${finished.target} first`);
  for (const { path, reason } of finished.flaws) context.log(`${mission}: ${path}: ${reason}`);
}

async function waitForLife(
  { machine, config }: PitContext,
  record: MissionRecord,
  keeper: ChildProcess,
): Promise<Started> {
  const { epoch } = record.life!;
  const ended = new Promise<void>((resolve) => {
    keeper.once("exit", () => resolve());
    keeper.once("error", () => resolve());
  });
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  const deadlineMs = machine.clock.monotonicMs() + START_WAIT_MS;
  for (;;) {
    const life = readLifeOf(config, record.mission, epoch);
    if (life !== undefined || hasEnded) return { record, epoch, life, ended };
    if (machine.clock.monotonicMs() > deadlineMs)
      throw notStarted(record.mission, "its keeper does not respond");
    await machine.clock.sleep(POLL_MS);
  }
}

async function acquireLifeLock(
  { machine, config }: PitContext,
  mission: MissionId,
  path: string,
): Promise<Lock> {
  const { clock } = machine;
  const startMs = clock.monotonicMs();
  for (;;) {
    const lock = tryAcquireLock(machine, path, `life of ${mission}`);
    if (lock !== undefined) return lock;
    const waitedMs = clock.monotonicMs() - startMs;
    // Without a keeper in the process table, the holder is a process that only tests the lock on a busy machine.
    if (waitedMs > START_WAIT_MS || (waitedMs > LOCK_TEST_MS && mayHaveKeeper(config, mission)))
      throw alreadyRunning(mission, readLife(config, mission));
    await clock.sleep(waitedMs > LOCK_TEST_MS ? TABLE_POLL_MS : POLL_MS);
  }
}

function mayHaveKeeper(config: Config, mission: MissionId): boolean {
  return process.platform !== "linux" || findKeepers(config, mission).length > 0;
}

function alreadyRunning(mission: string, life: Life | undefined): LazarusError {
  return new LazarusError(
    "AGENT_RUNNING",
    `an agent of ${mission} is already running${life === undefined ? "" : ` (process ${life.agent.pid})`}`,
    { hint: `lazarus status ${mission}, or stop it with: lazarus stop ${mission}`, details: { mission } },
  );
}

interface KeeperOptions {
  readonly foreground: boolean;
  readonly lifeLock: Lock;
  readonly settings: PitSettings;
  readonly env: Record<string, string>;
}

function spawnKeeper(
  context: PitContext,
  record: MissionRecord,
  { foreground, lifeLock, settings, env }: KeeperOptions,
): ChildProcess {
  const { config, machine } = context;
  const { epoch, command, token = "", cgroup } = record.life!;
  const mission = parseMissionId(record.mission);
  const cell = cellPaths(config, mission);
  makeDirectory(machine.disk, join(cell.root, "logs"));
  // The output of other commands is not searched for a cause, unless the user has patterns for it.
  const copyErrors = foreground && (record.adapter !== null || settings.patterns.length > 0);
  const keeperArgs = keeperArguments(
    {
      // As the kernel names it, so that the keeper can compare.
      directory: realpathSync.native(agentPaths(config, mission).directory),
      epoch,
      bootId: machine.processes.bootId(),
      mission,
      cell: cell.root,
      workingDirectory: record.cwd ?? cell.worktree,
      log: foreground && !copyErrors ? "" : agentLog(cell.root),
      copyErrors,
      logLimitBytes: settings.logLimitBytes,
      logCount: settings.logCount,
      heartbeatFile: cell.heartbeatFile,
      heartbeatSeconds: config.heartbeat_interval_seconds,
      leftoverGraceSeconds: settings.leftoverGraceSeconds,
      token,
      cgroup: cgroup ?? "",
      terminal: foreground ? undefined : terminalOf(context, record),
    },
    command,
  );
  const launcher = chooseLauncher(foreground, Object.keys(env));
  const stream = foreground ? "inherit" : "ignore";
  const keeper = spawn(launcher.program, [...launcher.args, storeScript(context), ...keeperArgs], {
    cwd: config.run_dir,
    detached: !foreground,
    stdio: [stream, stream, stream, lifeLock.fd],
    env: { ...env, ...launcher.env },
  });
  if (!foreground) keeper.unref();
  return keeper;
}

/** A terminal of the same size as in the life before, unless the user has started it in another terminal. */
function terminalOf({ config }: PitContext, { mission, terminal, life }: MissionRecord) {
  if (terminal == null) return undefined;
  const last = life?.how === "start" ? undefined : readTerminalSize(agentPaths(config, mission).terminalSize);
  return { ...(last ?? terminal), node: process.execPath, host: terminalHostFile() };
}

/** Named by its digest, so that an upgrade never changes the script under a running shell. */
function storeScript({ machine, config }: PitContext): string {
  const script = readKeeperScript();
  const digest = createHash("sha256").update(script).digest("hex").slice(0, 12);
  const path = join(config.run_dir, `keeper-${digest}.sh`);
  if (!existsSync(path)) createFile(machine.disk, path, script);
  return path;
}

export function notStarted(mission: string, reason: string, hint = `lazarus why ${mission}`): LazarusError {
  return new LazarusError("AGENT_NOT_STARTED", `cannot start the agent of ${mission}: ${reason}`, { hint });
}
