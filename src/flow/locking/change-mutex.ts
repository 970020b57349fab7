// The mutex around one read-modify-write of a flow, so that concurrent updates are not lost. It is a symbolic link whose
// target identifies the holder, so one system call creates it with its content: 60 µs per lock and unlock, where loading
// the library for kernel locks would take 10 ms. The mutex of a killed process is removed under flock, so that of many
// waiting processes only one removes it and none removes a successor's.
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
const REMOVAL_LOCK = ".guard.lock";

export function mutexPath(directory: string, name: string): string {
  return join(directory, `.${name}${SUFFIX}`);
}

/** Runs `work` while holding the mutex. Waits for a live holder, and takes over from a dead one. */
export async function withChangeMutex<T>(
  machine: Machine,
  path: string,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    const me = selfOwner(machine.processes);
    if (!tryTake(path, me)) await waitAndTake(machine, path, me);
    crashPoint("flow.mutex.taken");
    try {
      return await work();
    } finally {
      release(path);
    }
  } catch (error) {
    throw asLazarusError(error, `changing flows in ${dirname(path)}`, shellWord(dirname(path)));
  }
}

/** Removes the mutexes in `directory` whose holders are dead. */
export async function removeDeadMutexes(machine: Machine, directory: string): Promise<void> {
  const me = selfOwner(machine.processes);
  for (const name of readdirSync(directory)) {
    const mark = name.startsWith(".") && name.endsWith(SUFFIX) ? readMark(join(directory, name)) : undefined;
    if (mark !== undefined && isDead(machine, mark, me)) await removeDead(machine, join(directory, name), me);
  }
}

/** The timeout restarts with each new holder, so a long queue on a slow machine does not fail. */
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
    else if (machine.clock.monotonicMs() > deadline) throw stuckError(machine, path, mark, me);
    else await machine.clock.sleep(POLL_MS);
  } while (!tryTake(path, me));
}

/** False for a path that Lazarus did not create: its holder is unknown. */
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

/** The mark of the holder; undefined when the mutex is free, empty when the path is not a link. */
function readMark(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    return systemErrorCode(error) === "ENOENT" ? undefined : "";
  }
}

/** Under the kernel lock the mutex cannot change hands: its holder is dead, and other processes that remove it wait. */
async function removeDead(machine: Machine, path: string, me: Owner): Promise<void> {
  const { acquireLock } = await import("../../platform/lock.ts");
  using _lock = await acquireLock(machine, join(dirname(path), REMOVAL_LOCK), {
    purpose: "removing the mutex of a dead process",
    waitMs: WAIT_MS,
  });
  const mark = readMark(path);
  if (mark === undefined || !isDead(machine, mark, me)) return;
  crashPoint("flow.mutex.dead-found");
  release(path);
}

function stuckError(machine: Machine, path: string, mark: string, me: Owner): LazarusError {
  const holder = livenessOfMark(machine.processes, mark, me);
  const where = holder?.liveness === "elsewhere" ? "another machine or container" : "this machine";
  const who =
    holder === undefined ? "something that Lazarus did not create" : `process ${holder.pid} on ${where}`;
  const check =
    holder === undefined
      ? `ls -ld ${shellWord(path)}; if it is not needed`
      : `ps -p ${holder.pid} -f on that machine; if it has exited`;
  return new LazarusError("FLOW_BUSY", `${path} has been held for ${WAIT_MS / 1000} s by ${who}`, {
    hint: `${check}: rm ${shellWord(path)}`,
    details: { path },
  });
}
