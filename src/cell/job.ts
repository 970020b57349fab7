// Job heartbeats, of the pit or any cron job. `<heartbeat_dir>/<job>.last` records when the job last ran and its interval; a
// job is stale after twice its interval. A failed write is returned as an error, so that it never fails the job.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { makeDirectory } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Config } from "./config.ts";
import { HEARTBEAT_LIMIT_BYTES } from "./heartbeat.ts";
import { isMissionId } from "./mission-id.ts";

/** The heartbeat file of a job. */
export interface JobHeartbeat {
  readonly job: string;
  readonly timestamp: number;
  readonly interval_seconds: number;
  readonly pid: number;
  readonly status: string;
}

/** The state of a job. */
export interface JobReport {
  readonly job: string;
  readonly status: "fresh" | "stale" | "unreadable";
  readonly age_seconds: number | null;
  readonly interval_seconds: number | null;
  readonly last_status: string | null;
  readonly pid: number | null;
  readonly reason: string | null;
}

const SUFFIX = ".last";

/** Job names follow the rules of mission ids, since they become file names. */
export function parseJobName(text: string): string {
  if (isMissionId(text)) return text;
  throw new LazarusError("USAGE", `${JSON.stringify(text.slice(0, 140))} is not a job name`, {
    hint: "use letters, digits, '.', '_' or '-', starting with a letter or digit",
  });
}

/** Interval, status and process of a job. */
export interface BeatJobOptions {
  readonly intervalSeconds: number;
  readonly status?: string;
  /** The process that does the job. Default: this process. */
  readonly pid?: number;
}

/** Writes the heartbeat. Returns an error instead of throwing. */
export function beatJob(
  machine: Machine,
  config: Config,
  job: string,
  options: BeatJobOptions,
): { path: string; error: LazarusError | undefined } {
  const path = join(config.heartbeat_dir, `${job}${SUFFIX}`);
  try {
    makeDirectory(machine.disk, config.heartbeat_dir);
    const previous = readJsonFile(path, HEARTBEAT_LIMIT_BYTES, exactNumbers);
    const heartbeat: JobHeartbeat = {
      ...(previous.ok ? previous.value : {}),
      job,
      timestamp: epochSeconds(machine.clock),
      interval_seconds: options.intervalSeconds,
      pid: options.pid ?? process.pid,
      status: options.status ?? "ok",
    };
    writeJsonFile(machine.disk, path, heartbeat);
    return { path, error: undefined };
  } catch (error) {
    return { path, error: asLazarusError(error, `writing the job heartbeat ${path}`, config.heartbeat_dir) };
  }
}

/** Checks all jobs or the named ones. A named job without a heartbeat is reported as unreadable, never skipped. */
export function checkJobs(config: Config, nowSeconds: number, names?: readonly string[]): JobReport[] {
  return (names ?? listJobs(config)).map((job) => checkJob(config, job, nowSeconds));
}

function listJobs(config: Config): string[] {
  try {
    return readdirSync(config.heartbeat_dir)
      .filter((name) => name.endsWith(SUFFIX) && !name.startsWith("."))
      .map((name) => name.slice(0, -SUFFIX.length))
      .sort();
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw asLazarusError(
      error,
      `reading the job heartbeats in ${config.heartbeat_dir}`,
      config.heartbeat_dir,
    );
  }
}

function checkJob(config: Config, job: string, nowSeconds: number): JobReport {
  const reading = readJsonFile(join(config.heartbeat_dir, `${job}${SUFFIX}`), HEARTBEAT_LIMIT_BYTES);
  if (!reading.ok) return unreadable(job, reading.reason);
  return classifyJob(job, reading.value, nowSeconds);
}

/** Stale when the age exceeds twice the interval. Pure. */
export function classifyJob(
  job: string,
  heartbeat: Readonly<Record<string, unknown>>,
  nowSeconds: number,
): JobReport {
  const { timestamp, interval_seconds: interval, status, pid } = heartbeat;
  if (!isFiniteNumber(timestamp)) return unreadable(job, "has no timestamp");
  if (!isFiniteNumber(interval) || interval <= 0) return unreadable(job, "has no interval_seconds");
  const age = nowSeconds - timestamp;
  const stale = age > 2 * interval;
  return {
    job,
    status: stale ? "stale" : "fresh",
    age_seconds: Math.max(0, Math.floor(age)),
    interval_seconds: interval,
    last_status: typeof status === "string" ? status : null,
    pid: isFiniteNumber(pid) ? pid : null,
    reason: stale
      ? `no heartbeat for ${Math.floor(age)} s, more than twice its interval of ${interval} s`
      : null,
  };
}

function unreadable(job: string, reason: string): JobReport {
  return {
    job,
    status: "unreadable",
    age_seconds: null,
    interval_seconds: null,
    last_status: null,
    pid: null,
    reason,
  };
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
