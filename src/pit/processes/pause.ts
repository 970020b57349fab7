// Stops an agent's whole process tree with SIGSTOP, also while it forks.

import type { Life } from "../../cell/life.ts";
import type { Clock } from "../../platform/clock.ts";
import { agentTree, listProcesses, sendSignal } from "./process-table.ts";

/** A process inside a system call stops when the call returns; on a dead network disk it never does. */
const WAIT_MS = 5000;
const POLL_MS = 5;

/** Returns how many processes there were. */
export async function pauseTree(clock: Clock, life: Life): Promise<number> {
  const signaled = new Set<number>();
  const deadlineMs = clock.monotonicMs() + WAIT_MS;
  for (;;) {
    const table = listProcesses();
    const tree = agentTree(life, table);
    const fresh = tree.filter((pid) => !signaled.has(pid));
    for (const pid of fresh) {
      sendSignal(pid, "SIGSTOP");
      signaled.add(pid);
    }
    const running = table.filter(({ pid, state }) => tree.includes(pid) && !"TtZX".includes(state));
    // Done when all have stopped and none has forked before it did.
    if (fresh.length === 0 && running.length === 0) return signaled.size;
    if (clock.monotonicMs() > deadlineMs) return signaled.size;
    if (running.length > 0) await clock.sleep(POLL_MS);
  }
}
