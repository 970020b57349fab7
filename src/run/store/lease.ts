// Who may act on a run (INV-4): the owner's name, and the pure verdict on whether a lease can be taken over. A lease
// ends when its time is up, when it was given back, or when its owner is provably dead on this very machine, so that
// a restart after a crash does not wait for a clock. Taking it is a compare-and-swap on the epoch, in the backend.
import { isAlive, type Processes, type ProcessIdentity } from "../../platform/process-identity.ts";

/** How long a lease lasts unless it is renewed; every save renews it. */
export const DEFAULT_LEASE_MS = 30_000;

/** No lease lasts longer. One that seems to was given before the clock went back, and has ended. */
export const LONGEST_LEASE_MS = 24 * 3600_000;

/** Names this process so that another one on the same host can tell whether it still lives. */
export function ownerName(processes: Processes): string {
  const { pid, startTime, bootId } = processes.self();
  return [processes.hostName(), pid, startTime, bootId].map((part) => encodeURIComponent(part)).join("/");
}

/** Whether the named owner ran on this host and is gone. An owner elsewhere is never known to be dead. */
export function isOwnerDead(processes: Processes, owner: string): boolean {
  const parts = owner.split("/").map(decode);
  const [host, pid, startTime, bootId] = parts;
  if (parts.length !== 4 || host !== processes.hostName()) return false;
  const identity: ProcessIdentity = { pid: Number(pid), startTime: startTime!, bootId: bootId! };
  return Number.isSafeInteger(identity.pid) && !isAlive(processes, identity);
}

/** Why a lease can be claimed, or that it is held. */
export type LeaseVerdict = "free" | "expired" | "owner-dead" | "held";

/** Whether a lease can be claimed now. Pure: `ownerDead` is what `isOwnerDead` found out. */
export function judgeLease(
  lease: { readonly owner: string | null; readonly leaseUntilMs: number },
  nowMs: number,
  ownerDead: boolean,
): LeaseVerdict {
  if (lease.owner === null || lease.leaseUntilMs === 0) return "free";
  if (ownerDead) return "owner-dead";
  const leftMs = lease.leaseUntilMs - nowMs;
  return leftMs <= 0 || leftMs > LONGEST_LEASE_MS ? "expired" : "held";
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
