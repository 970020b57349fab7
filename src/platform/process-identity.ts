// The identity of a process: the kernel reuses pids, but not pid + start time + boot id. Reads /proc on Linux, and uses ps
// and sysctl elsewhere. Never sends a signal other than 0.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { quietly, systemErrorCode } from "./errors.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own format (clock ticks since boot on Linux). Compare, never parse. */
  readonly startTime: string;
  readonly bootId: string;
}

export interface Processes {
  /** The process that runs this code. */
  self(): ProcessIdentity;
  /** The process that has this pid now; undefined when there is none. */
  identify(pid: number): ProcessIdentity | undefined;
  bootId(): string;
  hostName(): string;
}

/** Whether exactly this process is alive: not a later one with its pid, and not a zombie. */
export function isAlive(processes: Processes, identity: ProcessIdentity): boolean {
  const now = processes.identify(identity.pid);
  return now !== undefined && now.startTime === identity.startTime && now.bootId === identity.bootId;
}

/** Whether any process has this pid. */
export function pidInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}

/**
 * Only for systems without /proc; node:child_process takes 3 ms to load. Language and time zone are fixed, since the
 * output is compared between processes with different environments.
 */
function query(program: string, ...args: string[]): string {
  const { execFileSync } = process.getBuiltinModule("node:child_process");
  return execFileSync(program, args, { encoding: "utf8", env: { LC_ALL: "C", TZ: "UTC" } }).trim();
}

let cachedBootId: string | undefined;

function linuxStartTime(pid: number): string | undefined {
  const fields = readProcessFields(pid);
  const state = fields?.[0];
  return state === "Z" || state === "X" ? undefined : fields?.[19];
}

/** The fields of /proc/PID/stat from the state on; undefined when there is no such process. */
export function readProcessFields(pid: number): string[] | undefined {
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  // The command name is in parentheses and may contain anything, so fields are counted after the last parenthesis.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function psStartTime(pid: number): string | undefined {
  if (!pidInUse(pid)) return undefined;
  try {
    const line = query("/bin/ps", "-o", "state=", "-o", "lstart=", "-p", String(pid));
    const [state = "", ...started] = line.split(/\s+/);
    return state.startsWith("Z") || started.length === 0 ? undefined : started.join(" ");
  } catch {
    return undefined;
  }
}

function readBootId(): string {
  if (process.platform === "linux") {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  }
  // Not kern.boottime, which moves whenever the wall clock is set.
  return query("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid");
}

function bootId(): string {
  cachedBootId ??= readBootId();
  return cachedBootId;
}

function identify(pid: number): ProcessIdentity | undefined {
  const startTime = process.platform === "linux" ? linuxStartTime(pid) : psStartTime(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId() };
}

export const systemProcesses: Processes = {
  self() {
    const identity = identify(process.pid);
    if (identity === undefined) throw new Error("this process cannot see itself in the process table");
    return identity;
  },
  identify,
  bootId,
  hostName: () => hostname(),
};
