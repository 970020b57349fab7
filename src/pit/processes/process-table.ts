// The process table of this machine (/proc), and which entries belong to a keeper or to an agent's tree.
import { readdirSync, readFileSync } from "node:fs";
import type { Life } from "../../cell/life.ts";
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

/**
 * An agent and everything it started: all descendants of its keeper except the keeper's own helper. Until it execs its
 * command, the agent is a fork of the keeper too.
 */
export function agentTree(
  { keeper, agent }: Life,
  table: readonly ProcessEntry[] = listProcesses(),
  isKeeper: (pid: number) => boolean = runsKeeperScript,
): number[] {
  if (table.length === 0) return [agent.pid];
  return table
    .filter(({ pid, parent }) => parent === keeper.pid && (pid === agent.pid || !isKeeper(pid)))
    .flatMap(({ pid }) => processTree(pid, table));
}

const KEEPER_SCRIPT_NAME = /\/keeper-[0-9a-f]+\.sh$/;

/** True for the keeper of any mission and for its helper, which is a fork of it. */
function runsKeeperScript(pid: number): boolean {
  return KEEPER_SCRIPT_NAME.test(readArguments(pid)[1] ?? "");
}

export interface KeeperProcess {
  readonly pid: number;
  readonly epoch: number;
}

/** The keepers of one mission and their helpers, found by command line, whatever the mission's files say. */
export function findKeepers(
  agentDirectory: string,
  table: readonly ProcessEntry[] = listProcesses(),
): KeeperProcess[] {
  return table.flatMap(({ pid }) => {
    const args = readArguments(pid);
    const script = args.findIndex((arg) => KEEPER_SCRIPT_NAME.test(arg));
    return script >= 0 && args[script + 1] === agentDirectory
      ? [{ pid, epoch: Number(args[script + 2]) }]
      : [];
  });
}

function readArguments(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** False when the process no longer exists. */
export function sendSignal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === "ESRCH") return false;
    throw error;
  }
}
