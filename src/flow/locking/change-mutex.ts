// A short mutual exclusion around one read-change-write of a flow, so that two updates at once lose nothing. It is a
// symbolic link whose target names its holder: made in one system call, with its content (60 µs a pair, where loading
// the kernel-lock library would cost 10 ms). Only a holder that was killed needs the kernel lock: whoever removes its
// guard does so under flock, so that of many takers one removes it and none removes a successor's.
import { readdirSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { livenessOfMark, type Owner, ownerMark, selfOwner } from "./owner.ts";

const WAIT_MS = 10_000;
const POLL_MS = 3;
const SUFFIX = ".guard";
const BREAKER_NAME = ".guard.lock";

export function guardPath(directory: string, name: string): string {
  return join(directory, `.${name}${SUFFIX}`);
}

/** Runs `work` while no other process runs its own on the same guard. Waits for live holders, clears dead ones. */
export async function withGuard<T>(machine: Machine, path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    const me = selfOwner(machine.processes);
    if (!tryTake(path, me)) await waitAndTake(machine, path, me);
    crashPoint("flow.guard.taken");
    try {
      return await work();
    } finally {
      release(path);
    }
  } catch (error) {
    // A full or read-only disk, in words, for whoever called.
    throw asLazarusError(error, `changing flows in ${dirname(path)}`, shellWord(dirname(path)));
  }
}

/** Removes guards in `directory` whose holders were killed and that nobody has asked for since. */
export async function clearDeadGuards(machine: Machine, directory: string): Promise<void> {
  const me = selfOwner(machine.processes);
  for (const name of readdirSync(directory)) {
    const mark = name.startsWith(".") && name.endsWith(SUFFIX) ? readMark(join(directory, name)) : undefined;
    if (mark !== undefined && isDead(machine, mark, me)) await removeDead(machine, join(directory, name), me);
  }
}

/** Patience is with each holder anew: in a crowd on a slow machine nobody is stuck, and everybody's turn comes. */
async function waitAndTake(machine: Machine, path: string, me: Owner): Promise<void> {
  let holder: string | undefined;
  let deadline = 0;
  do {
    const mark = readMark(path);
    if (mark === undefined) continue;
    if (mark !== holder) {
      holder = mark;
      deadline = machine.clock.monotonicMs() + WAIT_MS;
    }
    if (isDead(machine, mark, me)) await removeDead(machine, path, me);
    else if (machine.clock.monotonicMs() > deadline) throw stuck(machine, path, mark, me);
    else await machine.clock.sleep(POLL_MS);
  } while (!tryTake(path, me));
}

/** A guard that Lazarus did not make has no holder that could be dead. */
function isDead(machine: Machine, mark: string, me: Owner): boolean {
  return livenessOfMark(machine.processes, mark, me)?.liveness === "dead";
}

function tryTake(path: string, me: Owner): boolean {
  try {
    symlinkSync(ownerMark(me), path);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === "EEXIST") return false;
    throw error;
  }
}

function release(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
}

/** Who the guard names; undefined when it is gone, empty when it is no link. */
function readMark(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    return systemErrorCode(error) === "ENOENT" ? undefined : "";
  }
}

/** Under the kernel lock the guard cannot change hands: its holder is dead, and every other remover waits here. */
async function removeDead(machine: Machine, path: string, me: Owner): Promise<void> {
  const { acquireLock } = await import("../../platform/lock.ts");
  using _breaker = await acquireLock(machine, join(dirname(path), BREAKER_NAME), {
    purpose: "removing the guard of a process that was killed",
    waitMs: WAIT_MS,
  });
  const mark = readMark(path);
  if (mark === undefined || !isDead(machine, mark, me)) return;
  crashPoint("flow.guard.dead-found");
  release(path);
}

function stuck(machine: Machine, path: string, mark: string, me: Owner): LazarusError {
  const holder = livenessOfMark(machine.processes, mark, me);
  const where = holder?.liveness === "elsewhere" ? "another machine or container" : "this machine";
  const who =
    holder === undefined ? "something that Lazarus did not make" : `process ${holder.pid} on ${where}`;
  const look =
    holder === undefined
      ? `ls -ld ${shellWord(path)}; if nobody needs it`
      : `ps -p ${holder.pid} -f there; if it is gone`;
  return new LazarusError("FLOW_BUSY", `${path} has been held for ${WAIT_MS / 1000} s by ${who}`, {
    hint: `${look}: rm ${shellWord(path)}`,
    details: { path },
  });
}
