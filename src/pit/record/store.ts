// Where a mission's record lies and how it is read and written: durable JSON outside the cell, unknown fields kept. Only
// whoever holds the mission's lock writes it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { agentDirectory, readEpoch } from "../../cell/fence.ts";
import { isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { makeDirectory, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import {
  exactNumbers,
  isJsonObject,
  type JsonObject,
  readJsonFile,
  writeJsonFile,
} from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";
import { REVIVE_MODES, WISHES } from "../death/policy.ts";
import { EMPTY, type MissionRecord } from "./record.ts";

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
  if (reading.ok && reading.value.format === 1) {
    const record = { ...EMPTY, ...reading.value };
    if (isRecord(record)) return record as unknown as MissionRecord;
  }
  if (!reading.ok && reading.why === "absent") return undefined;
  const reason = reading.ok ? "not a record of this version" : reading.reason;
  throw new LazarusError("AGENT_RECORD_DAMAGED", `the agent record ${path} cannot be used: ${reason}`, {
    hint: `mv ${path} ${path}.damaged, then start the agent again with: lazarus run ${mission} -- COMMAND`,
  });
}

/** What the transitions calculate with; a record that someone edited or cut is named, not worked with. */
function isRecord(value: Readonly<Record<string, unknown>>): boolean {
  const isTexts = (list: unknown) => Array.isArray(list) && list.every((one) => typeof one === "string");
  const isPart = (part: unknown, fits: (part: JsonObject) => boolean = () => true) =>
    part === null || (isJsonObject(part) && Number.isSafeInteger(part.epoch) && fits(part));
  return (
    typeof value.mission === "string" &&
    typeof value.agent === "string" &&
    isTexts(value.command) &&
    isJsonObject(value.env) &&
    (value.cwd === null || typeof value.cwd === "string") &&
    (value.revive === null || (REVIVE_MODES as readonly unknown[]).includes(value.revive)) &&
    (value.substitute === null || isTexts(value.substitute)) &&
    (WISHES as readonly unknown[]).includes(value.wish) &&
    Array.isArray(value.revivals_ms) &&
    value.revivals_ms.every(Number.isFinite) &&
    Array.isArray(value.deaths) &&
    value.deaths.every(isJsonObject) &&
    Number.isSafeInteger(value.attempt) &&
    Number.isSafeInteger(value.steps_back) &&
    isPart(value.life, (life) => Number.isFinite(life.started_ms) && isTexts(life.command)) &&
    isPart(value.end, (end) => Number.isFinite(end.at_ms) && Array.isArray(end.evidence)) &&
    isPart(value.scene) &&
    isPart(value.decision) &&
    isPart(value.stalled)
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
