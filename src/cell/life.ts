// Reads what the keeper wrote about a life (life.json, exit.json) and asks the kernel whether the keeper is alive.
// Never writes.
import { closeSync, openSync } from "node:fs";
import { systemErrorCode } from "../platform/errors.ts";
import { isJsonObject, type JsonObject, readJsonFile } from "../platform/json-file.ts";
import { posixSupport } from "../platform/posix.ts";
import { isAlive, type Processes, type ProcessIdentity } from "../platform/process-identity.ts";
import { agentPaths } from "./agent-paths.ts";
import type { Config } from "./config.ts";

/** The processes of a life; written by the agent's own process before it execs the agent's command. */
export interface Life {
  readonly epoch: number;
  readonly keeper: ProcessIdentity;
  readonly agent: ProcessIdentity;
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
  const { epoch, keeper, agent, detached } = reading.value;
  if (typeof epoch !== "number" || !isIdentity(keeper) || !isIdentity(agent)) return undefined;
  return { epoch, keeper, agent, detached: detached === true };
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

/** True also while a keeper is starting. Without kernel locks the recorded process identity decides. */
export function isKeeperAlive(processes: Processes, config: Config, mission: string): boolean {
  if (posixSupport().ok) return isLocked(agentPaths(config, mission).lifeLock);
  const life = readLife(config, mission);
  return life !== undefined && isAlive(processes, life.keeper);
}
