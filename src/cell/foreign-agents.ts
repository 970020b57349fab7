// Agents of other missions that work in a mission's worktree, according to the kernel (/proc, Linux only; INV-4). One
// directory can be the worktree of missions of two homes, which know nothing of each other's records and locks.
import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import { readProcessFields } from "../platform/process-identity.ts";
import { isInside } from "./mission-id.ts";

export interface ForeignAgent {
  readonly pid: number;
  /** The cell of its mission. */
  readonly cell: string;
}

/**
 * A process whose working directory is in `directory` and whose environment names another cell than `cellRoot`. The
 * caller and its ancestors do not count: an agent knows what it restores or starts itself.
 */
export function findForeignAgent(directory: string, cellRoot: string): ForeignAgent | undefined {
  const own = realOrGiven(cellRoot);
  const callers = new Set(ancestors());
  for (const pid of (quietly(() => readdirSync("/proc")) ?? []).map(Number)) {
    if (!(pid > 0) || callers.has(pid)) continue;
    const cwd = quietly(() => readlinkSync(`/proc/${pid}/cwd`));
    if (cwd === undefined || (cwd !== directory && !isInside(directory, cwd))) continue;
    const cell = cellOf(pid);
    if (cell !== undefined && realOrGiven(cell) !== own) return { pid, cell };
  }
  return undefined;
}

/** "mission app of /home/me/other/missions (process 4711)" */
export function describeForeignAgent({ pid, cell }: ForeignAgent): string {
  return `mission ${basename(cell)} of ${dirname(cell)} (process ${pid})`;
}

/** Only processes of a life have both variables. */
function cellOf(pid: number): string | undefined {
  const environment = quietly(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? "";
  const value = (name: string) =>
    environment
      .split("\0")
      .find((each) => each.startsWith(`${name}=`))
      ?.slice(name.length + 1);
  return value("LAZARUS_LIFE") === undefined ? undefined : value("LAZARUS_CELL");
}

function ancestors(): number[] {
  const found: number[] = [];
  for (let pid = process.pid; pid > 0; pid = Number(readProcessFields(pid)?.[1] ?? 0)) found.push(pid);
  return found;
}

function realOrGiven(path: string): string {
  return quietly(() => realpathSync.native(path)) ?? path;
}

/** Processes vanish at any time, and those of other users cannot be read. */
function quietly<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
