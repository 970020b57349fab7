// Processes of a life that outlived their keeper, killed before anything new starts (INV-4). Without a control group, a
// process that left the session and cleared its environment before its keeper was killed cannot be told apart from any other.
import type { Clock } from "../../platform/clock.ts";
import { killCgroup } from "../processes/cgroup.ts";
import { findMembers, type LifeIdentity } from "../processes/members.ts";
import { sendSignal } from "../processes/process-table.ts";

const POLL_MS = 50;
/** SIGKILL has no effect on a process in an uninterruptible system call, for example on a dead network disk. */
const KILL_WAIT_MS = 10_000;

export interface KillResult {
  /** How many of the agent's own processes there were; the keeper's helper does not count. */
  readonly killed: number;
  /** Processes that survived SIGKILL. */
  readonly unkillable: readonly number[];
}

/** SIGTERM, then SIGKILL after `graceMs`, until no process of the life is left. */
export async function killOrphans(
  clock: Clock,
  identity: LifeIdentity,
  graceMs: number,
): Promise<KillResult> {
  const signaled = new Set<number>();
  let killed = 0;
  const startMs = clock.monotonicMs();
  for (;;) {
    const orphans = findMembers(identity);
    if (orphans.length === 0) return { killed, unkillable: [] };
    const waitedMs = clock.monotonicMs() - startMs;
    if (waitedMs > graceMs + KILL_WAIT_MS) return { killed, unkillable: orphans.map(({ pid }) => pid) };
    if (waitedMs >= graceMs && identity.cgroup !== null) killCgroup(identity.cgroup);
    const { helper } = identity.life ?? {};
    for (const { pid, parent, state } of orphans) {
      if (!signaled.has(pid) && pid !== helper?.pid && parent !== helper?.pid) killed += 1;
      if (waitedMs >= graceMs) sendSignal(pid, "SIGKILL");
      else if (!signaled.has(pid)) {
        sendSignal(pid, "SIGTERM");
        // A stopped process only reacts to SIGKILL.
        if (state === "T") sendSignal(pid, "SIGCONT");
      }
      signaled.add(pid);
    }
    await clock.sleep(POLL_MS);
  }
}
