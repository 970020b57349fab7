// What the kernel has counted for all processes of a life: CPU time and bytes written, to files, pipes and sockets alike.
// Counters of processes that ended are in those of their parent, so the sums only grow. Costs a few reads per process.
import { readdirSync, readFileSync } from "node:fs";
import type { Life } from "../../cell/life.ts";
import { quietly } from "../../platform/errors.ts";
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
  const lists = quietly(() =>
    readdirSync(`/proc/${pid}/task`).map((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1"),
    ),
  );
  return (lists ?? []).flatMap((list) => list.split(" ").map(Number).filter(Boolean));
}

/** Bytes given to write calls, and pages of mapped files that became dirty. 0 for processes of other users. */
function readWritten(pid: number): number {
  const counters = quietly(() => readFileSync(`/proc/${pid}/io`, "latin1")) ?? "";
  const written = [...counters.matchAll(/^(?:wchar|write_bytes): (\d+)$/gm)];
  return written.reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}
