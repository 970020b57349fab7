// One life of an agent as the machine shows it: the files that the keeper writes, and the kernel's word on whether the
// keeper lives. Only reads.
import { closeSync, openSync } from "node:fs";
import type { Config } from "../../cell/config.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { isJsonObject, type JsonObject, readJsonFile } from "../../platform/json-file.ts";
import { posixSupport } from "../../platform/posix.ts";
import { isAlive, type Processes, type ProcessIdentity } from "../../platform/process-identity.ts";
import { agentPlaces } from "../record/store.ts";

/** Who the processes of a life are; written by the agent's own process before it becomes the agent. */
export interface Life {
  readonly epoch: number;
  readonly keeper: ProcessIdentity;
  readonly agent: ProcessIdentity;
  /** Detached agents have a session of their own, the keeper's; in the foreground it is the terminal's. */
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
  const reading = readJsonFile(agentPlaces(config, mission).life);
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

export function readExit(config: Config, mission: string): Exit | undefined {
  const reading = readJsonFile(agentPlaces(config, mission).exit);
  if (!reading.ok) return undefined;
  const { epoch, status, ended_ms: endedMs, leftovers } = reading.value;
  if (typeof epoch !== "number" || typeof status !== "number" || typeof endedMs !== "number")
    return undefined;
  return {
    epoch,
    ...readStatus(status),
    endedMs,
    leftovers: typeof leftovers === "number" ? leftovers : 0,
  };
}

const SIGNAL_BASE = 128;

/** A shell's exit status: 128 + n stands for signal n. */
export function readStatus(status: number): Pick<Exit, "exitCode" | "signal"> {
  const signal = status > SIGNAL_BASE ? signalName(status - SIGNAL_BASE) : undefined;
  return signal === undefined ? { exitCode: status, signal: null } : { exitCode: null, signal };
}

/** The status that a shell would give. */
export function shellStatus({ exitCode, signal }: Pick<Exit, "exitCode" | "signal">): number {
  if (exitCode !== null) return exitCode;
  const { signals } = process.getBuiltinModule("node:os").constants;
  return SIGNAL_BASE + (signals[signal as NodeJS.Signals] ?? 0);
}

function signalName(number: number): string | undefined {
  const { signals } = process.getBuiltinModule("node:os").constants;
  return Object.entries(signals).find(([, value]) => value === number)?.[0];
}

/**
 * Whether someone holds a lock: the kernel says so, whatever the files say. False where there are no kernel locks. Asked
 * by taking it shared for a moment: two who look at once do not take each other for its holder.
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

/** Whether a keeper lives, or is just starting; without kernel locks the recorded identity decides. */
export function lifeGoesOn(processes: Processes, config: Config, mission: string): boolean {
  if (posixSupport().ok) return isLocked(agentPlaces(config, mission).lifeLock);
  const life = readLife(config, mission);
  return life !== undefined && isAlive(processes, life.keeper);
}
