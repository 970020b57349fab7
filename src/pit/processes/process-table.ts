// The process table of this machine (/proc).
import { readdirSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { readProcessFields } from "../../platform/process-identity.ts";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly startTime: string;
  /** One letter, as in ps: S sleeping, T stopped, Z zombie. */
  readonly state: string;
}

/** Empty where there is no /proc. */
export function listProcesses(): ProcessEntry[] {
  if (process.platform !== "linux") return [];
  const entries: ProcessEntry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0)) continue;
    const entry = readEntry(pid);
    if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

function readEntry(pid: number): ProcessEntry | undefined {
  const fields = readProcessFields(pid);
  if (fields === undefined) return undefined;
  return {
    pid,
    state: fields[0]!,
    parent: Number(fields[1]),
    session: Number(fields[3]),
    startTime: fields[19]!,
  };
}

/** A process and all its descendants. */
export function processTree(root: number, table: readonly ProcessEntry[] = listProcesses()): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of table) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const tree: number[] = [];
  const pending = [root];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    tree.push(pid);
    pending.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/** False when the process no longer exists, or belongs to another user: the agent started it with sudo, for example. */
export function sendSignal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (["ESRCH", "EPERM"].includes(systemErrorCode(error) ?? "")) return false;
    throw error;
  }
}
