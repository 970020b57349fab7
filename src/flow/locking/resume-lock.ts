// The resume lock of a flow (INV-4): who works on it now. `<workflow>.lock` beside the flow file, where the Python tool
// looks too. The verdict is a pure function of what the file says and who lives; taking and removing happen inside
// the flow's guard, so that of fifty that find a dead owner one takes over.
import { lstatSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
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
  /** Of another tool, or unreadable: no owner that could be asked after. */
  | { readonly kind: "ownerless"; readonly says: string };

export type LockVerdict = "free" | "mine" | "dead" | "held";

const LOCK_LIMIT_BYTES = 16 * 1024;

/** May `me` have it? A lock without an owner, or with one that cannot be seen from here, counts as held. */
export function judgeLock(lock: LockReading, me: Owner, liveness: (owner: Owner) => Liveness): LockVerdict {
  if (lock.kind === "none") return "free";
  if (lock.kind === "ownerless") return "held";
  if (isSameOwner(lock.owner, me)) return "mine";
  return liveness(lock.owner) === "dead" ? "dead" : "held";
}

export function readLock(place: FlowPlace): LockReading {
  // The usual case is no lock; asking first is a tenth of the cost of a failed open.
  if (lstatSync(place.lockFile, { throwIfNoEntry: false }) === undefined) return { kind: "none" };
  const text = readText(place.lockFile, LOCK_LIMIT_BYTES);
  if (typeof text !== "string") {
    return text.state === "absent" ? { kind: "none" } : { kind: "ownerless", says: "an unreadable file" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const owner = isJsonObject(value) ? parseOwner(value) : undefined;
  if (owner === undefined) return { kind: "ownerless", says: text.trim().slice(0, 80) };
  const takenAt =
    isJsonObject(value) && typeof value.takenAt === "string" ? value.takenAt : "an unknown time";
  return { kind: "owned", owner, takenAt };
}

export function verdictFor(machine: Machine, lock: LockReading, me: Owner): LockVerdict {
  return judgeLock(lock, me, (owner) => livenessOf(machine.processes, owner, me));
}

export interface LockTaken {
  readonly verdict: LockVerdict;
  /** What was there before. */
  readonly before: LockReading;
}

/** Takes the lock for `me`, inside the flow's guard. Verdict `held` means that it was not taken. */
export function takeLock(machine: Machine, place: FlowPlace, me: Owner, steal: boolean): LockTaken {
  const before = readLock(place);
  const verdict = verdictFor(machine, before, me);
  const content = formatExact({
    schema: "lazarus.flow-lock/1",
    workflowId: place.stem,
    ...ownerFields(me),
    takenAt: formatIso(machine.clock.nowMs()),
  });
  if (content.length > LOCK_LIMIT_BYTES) {
    throw new LazarusError("USAGE", `the name of ${place.stem}'s owner is too long to be kept in a lock`, {
      hint: "--owner session-7",
    });
  }
  if (verdict === "free") {
    // Other tools know no guard: creation itself must be atomic.
    if (!createFile(machine.disk, place.lockFile, content))
      return { verdict: "held", before: readLock(place) };
    crashPoint("flow.lock.created");
  } else if (verdict === "dead" || (verdict === "held" && steal)) {
    crashPoint("flow.lock.before-takeover");
    replaceFile(machine.disk, place.lockFile, content);
    crashPoint("flow.lock.taken-over");
  } else if (verdict === "mine" && before.kind === "owned" && !isSameProcess(before.owner, me)) {
    // The same name in a new process: the lock must follow the living one.
    replaceFile(machine.disk, place.lockFile, content);
  }
  return { verdict, before };
}

/** Lets go, inside the guard; a lock that someone else holds stays. Returns whether one was removed. */
export function releaseLock(machine: Machine, place: FlowPlace, me: Owner, force = false): boolean {
  const lock = readLock(place);
  if (lock.kind === "none") return false;
  if (verdictFor(machine, lock, me) === "held" && !force) return false;
  return removeFile(machine.disk, place.lockFile);
}

export function describeLock(lock: LockReading): string {
  if (lock.kind === "none") return "nobody";
  if (lock.kind === "owned") return `${describeOwner(lock.owner)}, since ${lock.takenAt}`;
  return `a lock without an owner (${JSON.stringify(lock.says)})`;
}

/** `instead` is what to type once the owner is known to be gone. */
export function lockedError(
  place: FlowPlace,
  lock: LockReading,
  doing: string,
  instead = `lazarus flow resume --workflow ${shellWord(place.stem)} --steal-lock`,
): LazarusError {
  const look =
    lock.kind === "owned"
      ? `ps -p ${lock.owner.pid} -f on ${shellWord(lock.owner.host)}; if it no longer works on this`
      : `if whoever wrote ${shellWord(place.lockFile)} is gone`;
  return new LazarusError("FLOW_LOCKED", `${doing} ${place.stem}: it is locked by ${describeLock(lock)}`, {
    hint: `${look}: ${instead}`,
    details: {
      workflowId: place.stem,
      lockFile: place.lockFile,
      owner: lock.kind === "owned" ? ownerFields(lock.owner) : null,
    },
  });
}
