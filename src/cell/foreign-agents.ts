// Agents of another home that work in a mission's worktree, according to the kernel (/proc, Linux only; INV-4). One directory
// can be the worktree of missions of two homes, which know nothing of each other's records and locks.
import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import { quietly } from "../platform/errors.ts";
import { readProcessFields } from "../platform/process-identity.ts";
import { isInside } from "./mission-id.ts";

export interface ForeignAgent {
  readonly pid: number;
  /** The cell of its mission. */
  readonly cell: string;
}

/**
 * A process whose working directory is in `directory` and whose environment names a cell of another home than that of
 * `cellRoot`. The life of the caller does not count: an agent knows what it restores or starts itself.
 */
export function findForeignAgent(directory: string, cellRoot: string): ForeignAgent | undefined {
  const ownHome = realOrGiven(dirname(cellRoot));
  const caller = lifeOf(process.pid).life;
  const callers = new Set(ancestors());
  for (const pid of (quietly(() => readdirSync("/proc")) ?? []).map(Number)) {
    if (!(pid > 0) || callers.has(pid)) continue;
    const cwd = quietly(() => readlinkSync(`/proc/${pid}/cwd`));
    if (cwd === undefined || (cwd !== directory && !isInside(directory, cwd))) continue;
    const { cell, life } = lifeOf(pid);
    if (cell === undefined || life === undefined || life === caller) continue;
    if (realOrGiven(dirname(cell)) !== ownHome) return { pid, cell };
  }
  return undefined;
}

/** "mission app of /home/me/other/missions (process 4711)" */
export function describeForeignAgent({ pid, cell }: ForeignAgent): string {
  return `mission ${basename(cell)} of ${dirname(cell)} (process ${pid})`;
}

/** Only processes of a life have both variables. */
function lifeOf(pid: number): { readonly cell: string | undefined; readonly life: string | undefined } {
  const environment = quietly(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? "";
  const value = (name: string) =>
    environment
      .split("\0")
      .find((each) => each.startsWith(`${name}=`))
      ?.slice(name.length + 1);
  return { cell: value("LAZARUS_CELL"), life: value("LAZARUS_LIFE") };
}

function ancestors(): number[] {
  const found: number[] = [];
  for (let pid = process.pid; pid > 0; pid = Number(readProcessFields(pid)?.[1] ?? 0)) found.push(pid);
  return found;
}

function realOrGiven(path: string): string {
  return quietly(() => realpathSync.native(path)) ?? path;
}
