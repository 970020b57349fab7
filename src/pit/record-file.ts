// Where a mission's record lies and how it is read and written: durable JSON outside the cell, unknown fields kept. Only
// whoever holds the mission's lock writes it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../cell/config.ts";
import { agentDirectory, readEpoch } from "../cell/fence.ts";
import { isMissionId, type MissionId } from "../cell/mission-id.ts";
import { makeDirectory, replaceFile } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { MissionRecord } from "./record.ts";

export interface AgentPlaces {
  readonly directory: string;
  readonly record: string;
  readonly epoch: string;
  /** Held while something is decided or done about the mission. */
  readonly lock: string;
  /** Held by the keeper for as long as it lives: the kernel's own word on whether a life is under way. */
  readonly lifeLock: string;
  readonly life: string;
  readonly exit: string;
}

export function agentPlaces(config: Config, mission: string): AgentPlaces {
  const directory = agentDirectory(config, mission);
  return {
    directory,
    record: join(directory, "record.json"),
    epoch: join(directory, "epoch"),
    lock: join(directory, "lock"),
    lifeLock: join(directory, "life.lock"),
    life: join(directory, "life.json"),
    exit: join(directory, "exit.json"),
  };
}

/** Missions that ever had an agent, in name order. */
export function listAgents(config: Config): MissionId[] {
  try {
    return readdirSync(join(config.run_dir, "agents")).filter(isMissionId).sort();
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Undefined when the mission never had an agent. */
export function readRecord(config: Config, mission: string): MissionRecord | undefined {
  const { record: path } = agentPlaces(config, mission);
  const reading = readJsonFile(path, undefined, exactNumbers);
  if (reading.ok && isRecord(reading.value)) return reading.value as unknown as MissionRecord;
  if (!reading.ok && reading.why === "absent") return undefined;
  const reason = reading.ok ? "not a record of this version" : reading.reason;
  throw new LazarusError("AGENT_RECORD_DAMAGED", `the agent record ${path} cannot be used: ${reason}`, {
    hint: `mv ${path} ${path}.damaged, then start the agent again with: lazarus run ${mission} -- COMMAND`,
  });
}

function isRecord(value: Readonly<Record<string, unknown>>): boolean {
  return (
    value.format === 1 &&
    Array.isArray(value.command) &&
    typeof value.wish === "string" &&
    Array.isArray(value.revivals_ms) &&
    Array.isArray(value.deaths)
  );
}

export function writeRecord(machine: Machine, config: Config, record: MissionRecord): void {
  const { directory, record: path } = agentPlaces(config, record.mission);
  try {
    makeDirectory(machine.disk, directory);
    writeJsonFile(machine.disk, path, record);
  } catch (error) {
    throw asLazarusError(error, `writing the agent record ${path}`, directory);
  }
}

/** The fence: durable before any process of the new life exists (INV-4). Only under the mission's lock. */
export function raiseEpoch(machine: Machine, config: Config, mission: string): number {
  const { directory, epoch: path } = agentPlaces(config, mission);
  makeDirectory(machine.disk, directory);
  // The record knows it, too: should the file be lost, the number still only grows.
  const known = Math.max(readEpoch(config, mission), readRecord(config, mission)?.life?.epoch ?? 0);
  replaceFile(machine.disk, path, `${known + 1}\n`);
  return known + 1;
}
