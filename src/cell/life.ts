// Reads what the keeper wrote about a life (life.json, exit.json) and asks the kernel whether the keeper is alive: a
// keeper is the process that holds the mission's life lock as its descriptor 3, even if the lock file was deleted.
// Never writes.
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { join } from "node:path";
import { systemErrorCode } from "../platform/errors.ts";
import { isJsonObject, type JsonObject, readJsonFile } from "../platform/json-file.ts";
import { posixSupport } from "../platform/posix.ts";
import {
  isAlive,
  type Processes,
  type ProcessIdentity,
  readProcessFields,
} from "../platform/process-identity.ts";
import { agentPaths } from "./agent-paths.ts";
import type { Config } from "./config.ts";
import { readEpoch } from "./fence.ts";

/** The processes of a life; written by the agent's own process before it execs the agent's command. */
export interface Life {
  readonly epoch: number;
  readonly keeper: ProcessIdentity;
  readonly agent: ProcessIdentity;
  /** The keeper's own process for heartbeats and log rotation. */
  readonly helper: ProcessIdentity | undefined;
  /** LAZARUS_LIFE in the environment of the agent. */
  readonly token: string | undefined;
  /** A detached agent is in the keeper's own session, a foreground agent in the terminal's. */
  readonly detached: boolean;
}

export interface Exit {
  readonly epoch: number;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endedMs: number;
  readonly leftovers: number;
}

export function readLife(config: Config, mission: string): Life | undefined {
  const reading = readJsonFile(agentPaths(config, mission).life);
  if (!reading.ok) return undefined;
  const { epoch, keeper, agent, helper, token, detached } = reading.value;
  if (typeof epoch !== "number" || !isIdentity(keeper) || !isIdentity(agent)) return undefined;
  return {
    epoch,
    keeper,
    agent,
    helper: isIdentity(helper) ? helper : undefined,
    token: typeof token === "string" ? token : undefined,
    detached: detached === true,
  };
}

function isIdentity(value: unknown): value is ProcessIdentity & JsonObject {
  return (
    isJsonObject(value) &&
    typeof value.pid === "number" &&
    typeof value.startTime === "string" &&
    typeof value.bootId === "string"
  );
}

function readExit(config: Config, mission: string): Exit | undefined {
  const reading = readJsonFile(agentPaths(config, mission).exit);
  if (!reading.ok) return undefined;
  const { epoch, status, ended_ms: endedMs, leftovers } = reading.value;
  if (typeof epoch !== "number" || typeof status !== "number" || typeof endedMs !== "number")
    return undefined;
  return {
    epoch,
    ...parseExitStatus(status),
    endedMs,
    leftovers: typeof leftovers === "number" ? leftovers : 0,
  };
}

/** The files of another life say nothing about this one: undefined unless the epoch matches. */
export function readLifeOf(config: Config, mission: string, epoch: number): Life | undefined {
  const life = readLife(config, mission);
  return life?.epoch === epoch ? life : undefined;
}

/** Undefined when the keeper of that life has not written an exit. */
export function readExitOf(config: Config, mission: string, epoch: number): Exit | undefined {
  const exit = readExit(config, mission);
  return exit?.epoch === epoch ? exit : undefined;
}

const SIGNAL_BASE = 128;

/** A shell's exit status: 128 + n means signal n. */
export function parseExitStatus(status: number): Pick<Exit, "exitCode" | "signal"> {
  const signal = status > SIGNAL_BASE ? signalName(status - SIGNAL_BASE) : undefined;
  return signal === undefined ? { exitCode: status, signal: null } : { exitCode: null, signal };
}

/** The exit status as a shell reports it. */
export function toShellStatus({ exitCode, signal }: Pick<Exit, "exitCode" | "signal">): number {
  if (exitCode !== null) return exitCode;
  const { signals } = process.getBuiltinModule("node:os").constants;
  return SIGNAL_BASE + (signals[signal as NodeJS.Signals] ?? 0);
}

function signalName(number: number): string | undefined {
  const { signals } = process.getBuiltinModule("node:os").constants;
  return Object.entries(signals).find(([, value]) => value === number)?.[0];
}

/**
 * Whether a process holds the lock, according to the kernel. False where there are no kernel locks. Takes it shared for a
 * moment, so that two concurrent readers do not mistake each other for the holder.
 */
export function isLocked(path: string): boolean {
  const support = posixSupport();
  if (!support.ok) return false;
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return false;
    throw error;
  }
  try {
    return !support.posix.tryLock(fd, "shared");
  } finally {
    closeSync(fd);
  }
}

const LIFE_LOCK_FD = 3;

/** The mission whose life lock this process holds: its keeper, or the launcher that becomes it. Undefined without /proc. */
export function lockedMission(config: Config, pid: number): string | undefined {
  try {
    const target = readlinkSync(`/proc/${pid}/fd/${LIFE_LOCK_FD}`).replace(/ \(deleted\)$/, "");
    const mission = /^.*\/([^/]+)\/life\.lock$/.exec(target)?.[1];
    if (mission === undefined) return undefined;
    // The kernel's path has no symbolic links. The directory of the mission itself may have been deleted.
    const agents = realpathSync.native(join(config.run_dir, "agents"));
    if (target !== join(agents, mission, "life.lock")) return undefined;
    const information = readFileSync(`/proc/${pid}/fdinfo/${LIFE_LOCK_FD}`, "latin1");
    return /^lock:.*\bFLOCK\b/m.test(information) ? mission : undefined;
  } catch {
    return undefined;
  }
}

/** The keeper of a mission, from the process table: for when the mission's files are lost. Empty without /proc. */
export function findKeepers(config: Config, mission: string): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && lockedMission(config, pid) === mission);
}

/** Whether exactly this process is alive and the mission's keeper. */
function isKeeper(processes: Processes, config: Config, mission: string, keeper: ProcessIdentity): boolean {
  if (!isAlive(processes, keeper)) return false;
  return process.platform !== "linux" || lockedMission(config, keeper.pid) === mission;
}

/**
 * Whether a life is running. Once the keeper has written life.json, its recorded identity decides, because the lock file
 * can be deleted or locked by others. Before that the lock decides: true also while a keeper is starting.
 */
export function isKeeperAlive(processes: Processes, config: Config, mission: string): boolean {
  const { lifeLock, record } = agentPaths(config, mission);
  const life = readLife(config, mission);
  if (life !== undefined && life.epoch >= readEpoch(config, mission))
    return isKeeper(processes, config, mission, life.keeper);
  if (isLocked(lifeLock)) return true;
  // The life has been recorded, but its files are lost.
  return life === undefined && existsSync(record) && findKeepers(config, mission).length > 0;
}

/** Stopped with SIGSTOP. False without /proc. */
export function isKeeperStopped({ pid }: ProcessIdentity): boolean {
  return process.platform === "linux" && readProcessFields(pid)?.[0] === "T";
}

/** The keeper of an agent that has exited, if it is stopped, so that it cannot record the exit. */
export function findStoppedKeeper(
  processes: Processes,
  config: Config,
  mission: string,
): ProcessIdentity | undefined {
  const life = readLife(config, mission);
  if (life === undefined || life.epoch < readEpoch(config, mission)) return undefined;
  const isStuck =
    isAlive(processes, life.keeper) && isKeeperStopped(life.keeper) && !isAlive(processes, life.agent);
  return isStuck ? life.keeper : undefined;
}
