// The public functions on cells and the registry. They call the internal operations, but mission ids are plain
// strings and the machine is an option, which only tests set.
import type { Config } from "./cell/config.ts";
import { type BeatRequest, type BeatResult, beat as writeHeartbeat } from "./cell/heartbeat.ts";
import { initCell as createCell, type InitResult } from "./cell/init.ts";
import {
  type BeatJobOptions,
  type JobReport,
  checkJobs as readJobs,
  beatJob as writeJobHeartbeat,
} from "./cell/job.ts";
import { parseMissionId } from "./cell/mission-id.ts";
import { scanCells as readCells, type ScanReport } from "./cell/scan.ts";
import { epochSeconds } from "./platform/clock.ts";
import { type Machine, systemMachine } from "./platform/machine.ts";
import { openRegistry as openRegistryOn, type Registry } from "./registry/registry.ts";

/** The machine to work on: clock, disk, ids and processes. Default: this one. */
export interface MachineOption {
  readonly machine?: Machine;
}

/**
 * Creates the cell of a mission, or completes one that lacks a directory.
 *
 * @example initCell(config, "fix-login");
 */
export function initCell(
  config: Config,
  mission: string,
  { machine = systemMachine }: MachineOption = {},
): InitResult {
  return createCell(machine, config, parseMissionId(mission));
}

/**
 * Writes a mission's heartbeat, durably.
 *
 * @example beat(config, "fix-login", { status: "running tests" });
 */
export function beat(
  config: Config,
  mission: string,
  { machine = systemMachine, ...request }: MachineOption & BeatRequest = {},
): BeatResult {
  return writeHeartbeat(machine, config, parseMissionId(mission), request);
}

/**
 * Writes the heartbeat of a job, such as a cron script. Returns an error instead of throwing it.
 *
 * @example beatJob(config, "nightly", { intervalSeconds: 86_400 });
 */
export function beatJob(
  config: Config,
  job: string,
  { machine = systemMachine, ...options }: MachineOption & BeatJobOptions,
): ReturnType<typeof writeJobHeartbeat> {
  return writeJobHeartbeat(machine, config, job, options);
}

/**
 * Reports the heartbeats of the named jobs, default all.
 *
 * @example checkJobs(config).filter(({ status }) => status !== "fresh");
 */
export function checkJobs(
  config: Config,
  { machine = systemMachine, names }: MachineOption & { readonly names?: readonly string[] } = {},
): JobReport[] {
  return readJobs(config, epochSeconds(machine.clock), names);
}

/**
 * Reports the state of every cell.
 *
 * @example scanCells(config).cells.filter(({ status }) => status === "stale");
 */
export function scanCells(config: Config, { machine = systemMachine }: MachineOption = {}): ScanReport {
  return readCells(config, epochSeconds(machine.clock));
}

/**
 * Opens the registry, the log of events and index of checkpoints; creates it if it does not exist.
 *
 * @example using registry = openRegistry(config.registry_file);
 */
export function openRegistry(path: string, { machine = systemMachine }: MachineOption = {}): Registry {
  return openRegistryOn(machine, path);
}
