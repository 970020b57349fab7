// The files of a mission's agent below `run_dir`, and the record among them: durable JSON outside the cell, unknown fields
// kept. Only the holder of the mission's lock writes it.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { Config } from "../../cell/config.ts";
import { readEpoch } from "../../cell/fence.ts";
import { cellPaths } from "../../cell/layout.ts";
import { isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { cancelPendingWrites, makeDirectory, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import {
  exactNumbers,
  isJsonObject,
  type JsonObject,
  readJsonFile,
  writeJsonFile,
} from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";
import { withReserve } from "../../platform/reserve.ts";
import { reserveFile } from "../paths.ts";
import { DEFAULTS, DESIRED_STATES, type MissionRecord, REVIVE_MODES } from "./record.ts";

/** Missions that ever had an agent or their own settings, sorted by name. A directory with only locks was made by a restore. */
export function listAgentMissions(config: Config): MissionId[] {
  const hadAgent = (mission: MissionId) => {
    const { epoch, record } = agentPaths(config, mission);
    return existsSync(epoch) || existsSync(record);
  };
  try {
    return readdirSync(join(config.run_dir, "agents")).filter(isMissionId).filter(hadAgent).sort();
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Undefined when the mission never had an agent; one without a life has only settings. */
export function readRecord(config: Config, mission: string): MissionRecord | undefined {
  const { record: path } = agentPaths(config, mission);
  const reading = readJsonFile(path, undefined, exactNumbers);
  if (reading.ok && reading.value.format === 1) {
    const record = { ...DEFAULTS, ...reading.value };
    if (isValidRecord(record)) return record as unknown as MissionRecord;
  }
  if (!reading.ok && reading.why === "absent") return undefined;
  const reason = reading.ok ? "not a valid record of this version" : reading.reason;
  throw new LazarusError("AGENT_RECORD_DAMAGED", `cannot read the agent record ${path}: ${reason}`, {
    hint: `mv ${path} ${path}.damaged, then start the agent again with: lazarus run ${mission} -- COMMAND`,
  });
}

/** The name of the mission's agent; null when it never had one. */
export function agentOf(config: Config, mission: string): string | null {
  const record = readRecord(config, mission);
  return record?.life == null ? null : record.agent;
}

export function isRecordDamaged(config: Config, mission: string): boolean {
  try {
    readRecord(config, mission);
    return false;
  } catch {
    return true;
  }
}

/** Makes room for a new record. The old one is kept under another name, for a human. Caller holds the mission's lock. */
export function setAsideDamagedRecord({ disk }: Machine, config: Config, mission: string): void {
  if (!isRecordDamaged(config, mission)) return;
  const { directory, record } = agentPaths(config, mission);
  disk.rename(record, `${record}.damaged`);
  disk.fsyncDirectory(directory);
}

/** Checks every field that the transitions use, so that an edited or truncated record is refused. */
function isValidRecord(value: Readonly<Record<string, unknown>>): boolean {
  const isStrings = (list: unknown) => Array.isArray(list) && list.every((item) => typeof item === "string");
  const isSection = (section: unknown, isValid: (section: JsonObject) => boolean = () => true) =>
    section === null || (isJsonObject(section) && Number.isSafeInteger(section.epoch) && isValid(section));
  return (
    typeof value.mission === "string" &&
    typeof value.agent === "string" &&
    (value.adapter === null || typeof value.adapter === "string") &&
    isStrings(value.command) &&
    isJsonObject(value.env) &&
    (value.cwd === null || typeof value.cwd === "string") &&
    (value.revive === null || (REVIVE_MODES as readonly unknown[]).includes(value.revive)) &&
    (value.substitute === null || isStrings(value.substitute)) &&
    (value.resume_command === null || isStrings(value.resume_command)) &&
    isJsonObject(value.settings) &&
    (value.environment === null || Number.isSafeInteger(value.environment)) &&
    (DESIRED_STATES as readonly unknown[]).includes(value.wish) &&
    Array.isArray(value.revivals_ms) &&
    value.revivals_ms.every(Number.isFinite) &&
    Array.isArray(value.retries_ms) &&
    value.retries_ms.every(Number.isFinite) &&
    Array.isArray(value.deaths) &&
    value.deaths.every(isJsonObject) &&
    Number.isSafeInteger(value.attempt) &&
    Number.isSafeInteger(value.retries) &&
    Number.isSafeInteger(value.steps_back) &&
    (value.stepped_back_ms === null || Number.isFinite(value.stepped_back_ms)) &&
    isSection(value.life, (life) => Number.isFinite(life.started_ms) && isStrings(life.command)) &&
    isSection(value.end, (end) => Number.isFinite(end.at_ms) && Array.isArray(end.evidence)) &&
    isSection(value.scene) &&
    isSection(value.decision) &&
    isSection(value.stalled)
  );
}

export function writeRecord(machine: Machine, config: Config, record: MissionRecord): void {
  const { directory, record: path } = agentPaths(config, record.mission);
  try {
    makeDirectory(machine.disk, directory);
    // A user's command must be recorded even when an agent has filled the disk.
    withReserve(machine.disk, reserveFile(config), () => writeJsonFile(machine.disk, path, record));
  } catch (error) {
    throw asLazarusError(error, `writing the agent record ${path}`, directory);
  }
}

/**
 * Fences earlier lives (INV-4): their heartbeats that are being written are cancelled, later ones are refused. Durable
 * before any process of the new life exists. Caller holds the mission's lock.
 */
export function fenceEarlierLives(machine: Machine, config: Config, mission: MissionId): number {
  const epoch = incrementEpoch(machine, config, mission);
  crashPoint("pit.start.epoch-raised");
  cancelPendingWrites(machine.disk, cellPaths(config, mission).heartbeatFile);
  return epoch;
}

function incrementEpoch(machine: Machine, config: Config, mission: string): number {
  const { directory, epoch: path } = agentPaths(config, mission);
  makeDirectory(machine.disk, directory);
  // The record has the epoch too: if the file is lost, the number still only grows.
  const known = Math.max(readEpoch(config, mission), readRecord(config, mission)?.life?.epoch ?? 0);
  replaceFile(machine.disk, path, `${known + 1}\n`);
  return known + 1;
}
