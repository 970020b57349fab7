// Who a process is: its pid alone is reused by the kernel, pid + start time + boot id is not.
// Reads /proc on Linux and asks ps and sysctl elsewhere; never signals anything but 0.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { systemErrorCode } from "./errors.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own words (clock ticks since boot on Linux). Compare, never parse. */
  readonly startTime: string;
  readonly bootId: string;
}

export interface Processes {
  /** The process that runs this code. */
  self(): ProcessIdentity;
  /** Who has this pid now; undefined when nobody. */
  identify(pid: number): ProcessIdentity | undefined;
  bootId(): string;
  hostName(): string;
}

/** Whether that very process still lives: not a namesake, not one of an earlier boot, not a zombie. */
export function isAlive(processes: Processes, identity: ProcessIdentity): boolean {
  const now = processes.identify(identity.pid);
  return now !== undefined && now.startTime === identity.startTime && now.bootId === identity.bootId;
}

/** Whether any live process has this pid, whoever it is. */
export function pidInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}

/**
 * Only systems without /proc get here; node:child_process costs 3 ms to load. Language and time zone are pinned:
 * the words are compared between processes whose environments differ.
 */
function ask(program: string, ...args: string[]): string {
  const { execFileSync } = process.getBuiltinModule("node:child_process");
  return execFileSync(program, args, { encoding: "utf8", env: { LC_ALL: "C", TZ: "UTC" } }).trim();
}

let cachedBootId: string | undefined;

function linuxStartTime(pid: number): string | undefined {
  const fields = readProcessFields(pid);
  const state = fields?.[0];
  return state === "Z" || state === "X" ? undefined : fields?.[19];
}

/** What Linux tells about a process, from its state on; undefined when there is none. */
export function readProcessFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name is in parentheses and may hold anything; the fields are counted after the last one.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

function psStartTime(pid: number): string | undefined {
  if (!pidInUse(pid)) return undefined;
  try {
    const line = ask("/bin/ps", "-o", "state=", "-o", "lstart=", "-p", String(pid));
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
  return ask("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid");
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
