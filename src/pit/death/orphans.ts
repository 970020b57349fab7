// Processes of a life that outlived their keeper, and how they are ended before anything new starts (INV-4). A process
// belongs to a life when it is the recorded agent, when it is in the keeper's own session, or when its environment says
// so. What cleaned its environment and left the session after its keeper was killed cannot be told apart from strangers.
import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "../../platform/clock.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { readProcessFields } from "../../platform/process-identity.ts";
import type { Life } from "../start/life.ts";

export interface Sighting {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly startTime: string;
  readonly state: string;
}

export interface LifeMarks {
  readonly cell: string;
  readonly epoch: number;
  readonly life: Life | undefined;
  readonly bootId: string;
}

/** All processes of this machine that can be seen; empty where there is no /proc. */
export function sightProcesses(): Sighting[] {
  if (process.platform !== "linux") return [];
  const seen: Sighting[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0)) continue;
    const sighting = sightProcess(pid);
    if (sighting !== undefined) seen.push(sighting);
  }
  return seen;
}

function sightProcess(pid: number): Sighting | undefined {
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

/** The processes of a life, its keeper left out. A later life of the same cell is never among them. */
export function findSurvivors(marks: LifeMarks, seen: readonly Sighting[] = sightProcesses()): Sighting[] {
  const { life } = marks;
  const known = life !== undefined && life.epoch === marks.epoch && life.keeper.bootId === marks.bootId;
  const leader = known ? seen.find(({ pid }) => pid === life.keeper.pid) : undefined;
  // The kernel gives a pid to nobody else while it names a session; when someone else has it, so is the session.
  const session =
    known && life.detached && (leader === undefined || leader.startTime === life.keeper.startTime)
      ? life.keeper.pid
      : undefined;
  return seen.filter((one) => {
    if (one.state === "Z" || one.state === "X" || one.pid === process.pid) return false;
    if (known && one.pid === life.keeper.pid && one.startTime === life.keeper.startTime) return false;
    if (known && one.pid === life.agent.pid && one.startTime === life.agent.startTime) return true;
    if (session !== undefined && one.session === session) return true;
    return carriesMarks(one.pid, marks);
  });
}

function carriesMarks(pid: number, { cell, epoch }: LifeMarks): boolean {
  let text: string;
  try {
    // Unreadable for the processes of other users, which are none of ours.
    text = readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return false;
  }
  if (!text.includes("LAZARUS_EPOCH=")) return false;
  const entries = text.split("\0");
  return entries.includes(`LAZARUS_CELL=${cell}`) && entries.includes(`LAZARUS_EPOCH=${epoch}`);
}

/** A process and all below it. */
export function treeOf(root: number, seen: readonly Sighting[] = sightProcesses()): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of seen) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const tree: number[] = [];
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    tree.push(pid);
    open.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/**
 * An agent and all that it started: everything below its keeper but the keeper's own helper. An agent that has just begun
 * is a fork of the keeper as well, until it becomes its command.
 */
export function agentTree(
  { keeper, agent }: Life,
  seen: readonly Sighting[] = sightProcesses(),
  isKeeper: (pid: number) => boolean = runsKeeperScript,
): number[] {
  if (seen.length === 0) return [agent.pid];
  return seen
    .filter(({ pid, parent }) => parent === keeper.pid && (pid === agent.pid || !isKeeper(pid)))
    .flatMap(({ pid }) => treeOf(pid, seen));
}

/** A process deep in a system call stops when that is over; one on a dead network disk never does. */
const STOP_WAIT_MS = 5000;
const STOP_LOOK_MS = 5;

/** Stops an agent and all that it started where they are; returns how many there were. */
export async function stopTree(clock: Clock, life: Life): Promise<number> {
  const asked = new Set<number>();
  const deadlineMs = clock.monotonicMs() + STOP_WAIT_MS;
  for (;;) {
    const seen = sightProcesses();
    const tree = agentTree(life, seen);
    const fresh = tree.filter((pid) => !asked.has(pid));
    for (const pid of fresh) {
      signal(pid, "SIGSTOP");
      asked.add(pid);
    }
    const running = seen.filter(({ pid, state }) => tree.includes(pid) && !"TtZX".includes(state));
    // Done when all that there were have stopped, and none of them has forked before it did.
    if (fresh.length === 0 && running.length === 0) return asked.size;
    if (clock.monotonicMs() > deadlineMs) return asked.size;
    if (running.length > 0) await clock.sleep(STOP_LOOK_MS);
  }
}

const KEEPER_SCRIPT_NAME = /\/keeper-[0-9a-f]+\.sh$/;

/** A keeper of any mission, or its helper, which is a fork of it. */
function runsKeeperScript(pid: number): boolean {
  return KEEPER_SCRIPT_NAME.test(readWords(pid)[1] ?? "");
}

export interface KeeperSighting {
  readonly pid: number;
  readonly epoch: number;
}

/** The keepers of one mission and their helpers, whatever its files say: by the words that they were started with. */
export function findKeepers(
  agentDirectory: string,
  seen: readonly Sighting[] = sightProcesses(),
): KeeperSighting[] {
  return seen.flatMap(({ pid }) => {
    const words = readWords(pid);
    const at = words.findIndex((word) => KEEPER_SCRIPT_NAME.test(word));
    return at >= 0 && words[at + 1] === agentDirectory ? [{ pid, epoch: Number(words[at + 2]) }] : [];
  });
}

function readWords(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** Sends a signal; false when the process was gone already. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === "ESRCH") return false;
    throw error;
  }
}

const LOOK_MS = 50;
/** A process that the kernel cannot end (on a dead network disk, say) is not waited for for ever. */
const KILL_WAIT_MS = 10_000;

export interface Ending {
  /** How many of the agent's own there were; the keeper's helper does not count. */
  readonly ended: number;
  /** Those that even SIGKILL did not end. */
  readonly immortal: readonly number[];
}

/** TERM, a grace, KILL, until nothing of that life is left. */
export async function endSurvivors(clock: Clock, marks: LifeMarks, graceMs: number): Promise<Ending> {
  const met = new Set<number>();
  let ended = 0;
  const begunMs = clock.monotonicMs();
  for (;;) {
    const survivors = findSurvivors(marks);
    if (survivors.length === 0) return { ended, immortal: [] };
    const waitedMs = clock.monotonicMs() - begunMs;
    if (waitedMs > graceMs + KILL_WAIT_MS) return { ended, immortal: survivors.map(({ pid }) => pid) };
    for (const { pid, state } of survivors) {
      // The keeper's helper and what it calls carry no marks; an agent that has just begun carries none yet.
      if (!met.has(pid) && (pid === marks.life?.agent.pid || carriesMarks(pid, marks))) ended += 1;
      if (waitedMs >= graceMs) signal(pid, "SIGKILL");
      else if (!met.has(pid)) {
        signal(pid, "SIGTERM");
        // A stopped process hears nothing but SIGKILL.
        if (state === "T") signal(pid, "SIGCONT");
      }
      met.add(pid);
    }
    await clock.sleep(LOOK_MS);
  }
}
