// Processes of a life that outlived their keeper, killed before anything new starts (INV-4). A process belongs to a life
// when it is the recorded agent, is in the keeper's session, or carries the life's environment variables. A process that
// left the session and cleared its environment after its keeper was killed cannot be told apart from any other.
import { readFileSync } from "node:fs";
import type { Life } from "../../cell/life.ts";
import type { Clock } from "../../platform/clock.ts";
import { listProcesses, type ProcessEntry, sendSignal } from "../processes/process-table.ts";

export interface LifeIdentity {
  readonly cell: string;
  readonly epoch: number;
  readonly life: Life | undefined;
  readonly bootId: string;
}

/** The processes of a life without its keeper. Never includes a later life of the same cell. */
export function findOrphans(
  identity: LifeIdentity,
  table: readonly ProcessEntry[] = listProcesses(),
): ProcessEntry[] {
  const { life } = identity;
  const known = life !== undefined && life.epoch === identity.epoch && life.keeper.bootId === identity.bootId;
  const leader = known ? table.find(({ pid }) => pid === life.keeper.pid) : undefined;
  // The kernel does not reuse a pid while a session is named after it; if the pid was reused, so was the session.
  const session =
    known && life.detached && (leader === undefined || leader.startTime === life.keeper.startTime)
      ? life.keeper.pid
      : undefined;
  return table.filter((entry) => {
    if (entry.state === "Z" || entry.state === "X" || entry.pid === process.pid) return false;
    if (known && entry.pid === life.keeper.pid && entry.startTime === life.keeper.startTime) return false;
    if (known && entry.pid === life.agent.pid && entry.startTime === life.agent.startTime) return true;
    if (session !== undefined && entry.session === session) return true;
    return hasLifeVariables(entry.pid, identity);
  });
}

function hasLifeVariables(pid: number, { cell, epoch }: LifeIdentity): boolean {
  let text: string;
  try {
    // Fails for processes of other users, which are never ours.
    text = readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return false;
  }
  if (!text.includes("LAZARUS_EPOCH=")) return false;
  const variables = text.split("\0");
  return variables.includes(`LAZARUS_CELL=${cell}`) && variables.includes(`LAZARUS_EPOCH=${epoch}`);
}

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
    const orphans = findOrphans(identity);
    if (orphans.length === 0) return { killed, unkillable: [] };
    const waitedMs = clock.monotonicMs() - startMs;
    if (waitedMs > graceMs + KILL_WAIT_MS) return { killed, unkillable: orphans.map(({ pid }) => pid) };
    for (const { pid, state } of orphans) {
      // The keeper's helper has no life variables; neither has an agent that has not exec'd yet.
      if (!signaled.has(pid) && (pid === identity.life?.agent.pid || hasLifeVariables(pid, identity)))
        killed += 1;
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
