// What the kernel has counted for all processes of a life: CPU time and bytes written, to files, pipes and sockets alike.
// Counters of processes that ended are in those of their parent, so the sums only grow. Costs a few reads per process.
import { readdirSync, readFileSync } from "node:fs";
import type { Life } from "../../cell/life.ts";
import { readProcessFields } from "../../platform/process-identity.ts";

export interface Usage {
  readonly cpuMs: number;
  readonly writtenBytes: number;
}

/** A clock tick of /proc, in every build of Linux that Node supports. */
const TICK_MS = 10;

/** Undefined where there is no /proc. */
export function readUsage({
  keeper,
  agent,
  helper,
}: Pick<Life, "keeper" | "agent" | "helper">): Usage | undefined {
  if (process.platform !== "linux") return undefined;
  let cpuMs = 0;
  let writtenBytes = 0;
  // The keeper inherits what the agent leaves behind, with its counters. Its helper's own writes are no activity; a keeper
  // of an older version has not named its helper.
  for (const pid of descendants(helper === undefined ? agent.pid : keeper.pid, helper?.pid)) {
    const fields = readProcessFields(pid);
    if (fields === undefined) continue;
    // User and system time, its own and that of children that ended.
    for (const ticks of fields.slice(11, 15)) cpuMs += Number(ticks) * TICK_MS;
    writtenBytes += readWritten(pid);
  }
  return { cpuMs, writtenBytes };
}

function* descendants(root: number, except: number | undefined): Generator<number> {
  const pending = [root];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    if (pid === except) continue;
    yield pid;
    pending.push(...children(pid));
  }
}

/** Every thread has a list of the processes that it started. */
function children(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").map(Number).filter(Boolean),
    );
  } catch {
    return [];
  }
}

/** Bytes given to write calls, and pages of mapped files that became dirty. 0 for processes of other users. */
function readWritten(pid: number): number {
  try {
    const counters = readFileSync(`/proc/${pid}/io`, "latin1");
    return [...counters.matchAll(/^(?:wchar|write_bytes): (\d+)$/gm)].reduce(
      (sum, [, bytes]) => sum + Number(bytes),
      0,
    );
  } catch {
    return 0;
  }
}
