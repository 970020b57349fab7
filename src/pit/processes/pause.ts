// Stops an agent's whole process tree with SIGSTOP, even while it forks.
import type { Clock } from "../../platform/clock.ts";
import { findMembers, type LifeIdentity } from "./members.ts";
import { sendSignal } from "./process-table.ts";

/** A process inside a system call stops when the call returns; on a dead network disk it never does. */
const WAIT_MS = 5000;
const POLL_MS = 5;

/** Returns how many processes there were. */
export async function pauseTree(clock: Clock, identity: LifeIdentity): Promise<number> {
  const signaled = new Set<number>();
  const deadlineMs = clock.monotonicMs() + WAIT_MS;
  for (;;) {
    const members = findMembers(identity);
    const fresh = members.filter(({ pid }) => !signaled.has(pid));
    for (const { pid } of fresh) {
      sendSignal(pid, "SIGSTOP");
      signaled.add(pid);
    }
    const running = members.filter(({ state }) => !"Tt".includes(state));
    // Done when all have stopped and no new process has appeared.
    if (fresh.length === 0 && running.length === 0) return signaled.size;
    if (clock.monotonicMs() > deadlineMs) return signaled.size;
    if (running.length > 0) await clock.sleep(POLL_MS);
  }
}
