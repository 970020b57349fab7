// Who may write a run (INV-4): the owner's name, and the pure decision whether a lease can be claimed. A lease ends when
// it expires, is released, or its owner is known to be dead on this host, so that a restart after a crash does not
// have to wait for the expiry. Claiming is a compare-and-swap on the epoch, in the journal.
import { isAlive, type Processes, type ProcessIdentity } from "../../platform/process-identity.ts";

/** Duration of a lease; every save renews it. */
export const DEFAULT_LEASE_MS = 30_000;

/** How many times in a row a run may be claimed without completing a step. */
export const DEFAULT_DEATHS = 5;

/** A lease that seems to last longer was written before the clock was set back, and counts as expired. */
export const MAX_LEASE_MS = 24 * 3600_000;

/** Identifies this process, so that another process on the same host can tell whether it is alive. */
export function ownerName(processes: Processes): string {
  const { pid, startTime, bootId } = processes.self();
  return [processes.hostName(), pid, startTime, bootId].map((part) => encodeURIComponent(part)).join("/");
}

/** Whether the owner ran on this host and is gone. An owner on another host is never known to be dead. */
export function isOwnerDead(processes: Processes, owner: string): boolean {
  const identity = localOwner(processes, owner);
  return identity !== undefined && !isAlive(processes, identity);
}

/** Whether the owner is another process of this host and alive. */
export function isOwnerAlive(processes: Processes, owner: string): boolean {
  const identity = localOwner(processes, owner);
  return identity !== undefined && identity.pid !== processes.self().pid && isAlive(processes, identity);
}

function localOwner(processes: Processes, owner: string): ProcessIdentity | undefined {
  // The part after # distinguishes the claims of one process.
  const parts = owner.split("#")[0]!.split("/").map(decode);
  const [host, pid, startTime, bootId] = parts;
  if (parts.length !== 4 || host !== processes.hostName()) return undefined;
  const identity: ProcessIdentity = { pid: Number(pid), startTime: startTime!, bootId: bootId! };
  return Number.isSafeInteger(identity.pid) ? identity : undefined;
}

/** Why a lease can be claimed, or that it is held. */
export type LeaseVerdict = "free" | "expired" | "owner-dead" | "held";

/** Whether a lease can be claimed now. Pure; `ownerDead` comes from `isOwnerDead`. */
export function judgeLease(
  lease: { readonly owner: string | null; readonly leaseUntilMs: number },
  nowMs: number,
  ownerDead: boolean,
): LeaseVerdict {
  if (lease.owner === null || lease.leaseUntilMs === 0) return "free";
  if (ownerDead) return "owner-dead";
  const leftMs = lease.leaseUntilMs - nowMs;
  return leftMs <= 0 || leftMs > MAX_LEASE_MS ? "expired" : "held";
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
