// Kernel locks (flock). The kernel releases them when the holder dies, so a lock is never stale and needs no timeout. Only
// its holder may remove a lock file, together with everything that it protects. Its content names the holder for people
// and is never used for decisions.
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { LazarusError, quietly } from "./errors.ts";
import type { Machine } from "./machine.ts";
import { posixSupport } from "./posix.ts";

export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  /** What the holder is doing: "checkpoint of deploy-42". */
  readonly purpose: string;
  /** Epoch seconds. */
  readonly since: number;
}

export interface Lock extends Disposable {
  readonly path: string;
  /** A child process that inherits this descriptor also holds the lock, and keeps it when this process releases it. */
  readonly fd: number;
}

export interface LockRequest {
  readonly purpose: string;
  /** How long to wait for the lock. Default 0: try once. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

const POLL_MS = 25;

/** Takes the lock, waiting up to `waitMs`. Then throws LOCK_HELD, which names the holder. */
export async function acquireLock(machine: Machine, path: string, request: LockRequest): Promise<Lock> {
  const deadline = machine.clock.monotonicMs() + (request.waitMs ?? 0);
  for (;;) {
    const lock = tryAcquireLock(machine, path, request.purpose);
    if (lock !== undefined) return lock;
    if (machine.clock.monotonicMs() >= deadline || request.signal?.aborted)
      throw lockHeld(path, request.purpose);
    await machine.clock.sleep(POLL_MS, request.signal);
  }
}

/** Takes the lock, or returns undefined when another process holds it. */
export function tryAcquireLock(machine: Machine, path: string, purpose: string): Lock | undefined {
  const support = posixSupport();
  if (!support.ok) {
    throw new LazarusError("PLATFORM_UNSUPPORTED", `kernel locks are not available: ${support.reason}`, {
      hint: "npm rebuild koffi, then lazarus doctor",
    });
  }
  const { posix } = support;
  const fd = openSync(path, "a+", 0o600);
  if (!posix.tryLock(fd) || !isStillAt(fd, path)) {
    closeSync(fd);
    return undefined;
  }
  const owner: LockOwner = {
    pid: process.pid,
    host: machine.processes.hostName(),
    purpose,
    since: machine.clock.nowMs() / 1000,
  };
  noteOwner(fd, JSON.stringify(owner));
  let held = true;
  return {
    path,
    fd,
    [Symbol.dispose]() {
      if (!held) return;
      held = false;
      noteOwner(fd, "");
      closeSync(fd);
    },
  };
}

/** False when the last holder removed the file after this process had opened it. */
function isStillAt(fd: number, path: string): boolean {
  const [locked, found] = [fstatSync(fd), statSync(path, { throwIfNoEntry: false })];
  return locked.ino === found?.ino && locked.dev === found.dev;
}

/**
 * The last holder noted in a lock file; undefined after a release or when the note is unreadable. A killed holder is
 * still named: only taking the lock shows whether it is held.
 */
export function readLockOwner(path: string): LockOwner | undefined {
  const owner: Partial<LockOwner> | null = quietly(() => JSON.parse(readFileSync(path, "utf8")));
  return typeof owner?.pid === "number" ? (owner as LockOwner) : undefined;
}

function lockHeld(path: string, purpose: string): LazarusError {
  const owner = readLockOwner(path);
  const who = owner ? `process ${owner.pid} on ${owner.host} (${owner.purpose})` : "another process";
  return new LazarusError("LOCK_HELD", `${purpose}: ${who} holds the lock ${path}`, {
    hint: owner
      ? `wait for it, or inspect it: ps -p ${owner.pid} -f`
      : "wait, then run the same command again",
    details: { path, owner: owner ?? null },
  });
}

/** Best effort: a full disk must not prevent taking the lock. */
function noteOwner(fd: number, text: string): void {
  try {
    ftruncateSync(fd, 0);
    if (text !== "") writeSync(fd, text);
  } catch {}
}
