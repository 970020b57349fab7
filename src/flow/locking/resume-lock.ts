// The resume lock of a flow (INV-4): the owner that works on it. It is `<workflow>.lock` next to the flow file, where the
// Python tool also looks. The verdict is a pure function of the file's content and the owner's liveness. The lock is
// taken and removed under the flow's mutex, so that only one of many processes takes over from a dead owner.
import { lstatSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError, quietly } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { formatIso } from "../document/document.ts";
import { formatExact } from "../document/python-json.ts";
import { readText } from "../document/read.ts";
import type { FlowPlace } from "../document/workspace.ts";
import {
  describeOwner,
  isSameOwner,
  isSameProcess,
  type Liveness,
  livenessOf,
  type Owner,
  ownerFields,
  parseOwner,
} from "./owner.ts";

export type LockReading =
  | { readonly kind: "none" }
  | { readonly kind: "owned"; readonly owner: Owner; readonly takenAt: string }
  /** Written by another tool, or unreadable: its owner is unknown. */
  | { readonly kind: "ownerless"; readonly content: string };

export type LockVerdict = "free" | "mine" | "dead" | "held";

const LOCK_LIMIT_BYTES = 16 * 1024;

/** Whether `me` may take it. A lock without a known owner, or whose owner is not visible from here, counts as held. */
export function judgeLock(lock: LockReading, me: Owner, liveness: (owner: Owner) => Liveness): LockVerdict {
  if (lock.kind === "none") return "free";
  if (lock.kind === "ownerless") return "held";
  if (isSameOwner(lock.owner, me)) return "mine";
  return liveness(lock.owner) === "dead" ? "dead" : "held";
}

export function readLock(place: FlowPlace): LockReading {
  // Usually there is no lock, and lstat takes a tenth of the time of a failed open.
  if (lstatSync(place.lockFile, { throwIfNoEntry: false }) === undefined) return { kind: "none" };
  const text = readText(place.lockFile, LOCK_LIMIT_BYTES);
  if (typeof text !== "string") {
    return text.state === "absent" ? { kind: "none" } : { kind: "ownerless", content: "an unreadable file" };
  }
  const value: unknown = quietly(() => JSON.parse(text));
  const owner = isJsonObject(value) ? parseOwner(value) : undefined;
  if (owner === undefined) return { kind: "ownerless", content: text.trim().slice(0, 80) };
  const takenAt =
    isJsonObject(value) && typeof value.takenAt === "string" ? value.takenAt : "an unknown time";
  return { kind: "owned", owner, takenAt };
}

export function lockVerdict(machine: Machine, lock: LockReading, me: Owner): LockVerdict {
  return judgeLock(lock, me, (owner) => livenessOf(machine.processes, owner, me));
}

export interface LockTaken {
  readonly verdict: LockVerdict;
  /** The lock before the call. */
  readonly before: LockReading;
}

/** Takes the lock for `me`; the caller holds the flow's mutex. Verdict `held` without `steal` means that it was not taken. */
export function takeLock(machine: Machine, place: FlowPlace, me: Owner, steal: boolean): LockTaken {
  const before = readLock(place);
  const verdict = lockVerdict(machine, before, me);
  const content = formatExact({
    schema: "lazarus.flow-lock/1",
    workflowId: place.stem,
    ...ownerFields(me),
    takenAt: formatIso(machine.clock.nowMs()),
  });
  if (content.length > LOCK_LIMIT_BYTES) {
    throw new LazarusError("USAGE", `the owner name for ${place.stem} is too long`, {
      hint: "--owner session-7",
    });
  }
  if (verdict === "free") {
    // Other tools do not use the mutex, so creation itself must be atomic.
    if (!createFile(machine.disk, place.lockFile, content))
      return { verdict: "held", before: readLock(place) };
    crashPoint("flow.lock.created");
  } else if (verdict === "dead" || (verdict === "held" && steal)) {
    crashPoint("flow.lock.before-takeover");
    replaceFile(machine.disk, place.lockFile, content);
    crashPoint("flow.lock.taken-over");
  } else if (verdict === "mine" && before.kind === "owned" && !isSameProcess(before.owner, me)) {
    // The same `--owner` in a new process: the lock must name the live process.
    replaceFile(machine.disk, place.lockFile, content);
  }
  return { verdict, before };
}

/** Removes the lock unless another owner holds it; the caller holds the mutex. Returns whether it was removed. */
export function releaseLock(machine: Machine, place: FlowPlace, me: Owner, force = false): boolean {
  const lock = readLock(place);
  if (lock.kind === "none") return false;
  if (lockVerdict(machine, lock, me) === "held" && !force) return false;
  return removeFile(machine.disk, place.lockFile);
}

export function describeLock(lock: LockReading): string {
  if (lock.kind === "none") return "nobody";
  if (lock.kind === "owned") return `${describeOwner(lock.owner)}, since ${lock.takenAt}`;
  return `a lock without an owner (${JSON.stringify(lock.content)})`;
}

/** `command` is what to run once the owner is known to be gone. */
export function lockedError(
  place: FlowPlace,
  lock: LockReading,
  doing: string,
  command = `lazarus flow resume --workflow ${shellWord(place.stem)} --steal-lock`,
): LazarusError {
  const check =
    lock.kind === "owned"
      ? `ps -p ${lock.owner.pid} -f on ${shellWord(lock.owner.host)}; if it no longer works on this flow`
      : `if the process that wrote ${shellWord(place.lockFile)} is gone`;
  return new LazarusError("FLOW_LOCKED", `${doing} ${place.stem}: it is locked by ${describeLock(lock)}`, {
    hint: `${check}: ${command}`,
    details: {
      workflowId: place.stem,
      lockFile: place.lockFile,
      owner: lock.kind === "owned" ? ownerFields(lock.owner) : null,
    },
  });
}
