// What the kernel's out-of-memory killer did here: the counter of our control group, and the kernel's log where it may be
// read. Only reads; where neither can be read there is no evidence.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";

/** How often it struck in the control group of this process and below; null when nobody can say. */
export function countOomKills(): number | null {
  const groups = quietly(() => readFileSync("/proc/self/cgroup", "latin1"));
  if (groups === undefined) return null;
  for (const line of groups.split("\n")) {
    const [, controllers = "", path = ""] = line.split(":");
    const file =
      controllers === ""
        ? `/sys/fs/cgroup${path}/memory.events`
        : controllers.split(",").includes("memory")
          ? `/sys/fs/cgroup/memory${path}/memory.oom_control`
          : undefined;
    const text = file === undefined ? undefined : quietly(() => readFileSync(file, "latin1"));
    const count = /^oom_kill (\d+)/m.exec(text ?? "")?.[1];
    if (count !== undefined) return Number(count);
  }
  return null;
}

const LOG_WAIT_MS = 1000;

/** The line of the kernel's log that says it ended this process; undefined when there is none or it may not be read. */
export function findOomLine(pid: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = {
      timeout: LOG_WAIT_MS,
      maxBuffer: 16 * 1024 * 1024,
      env: { LC_ALL: "C", PATH: "/usr/bin:/bin" },
    };
    execFile("dmesg", [], options, (_, stdout) => resolve(pickOomLine(stdout ?? "", pid)));
  });
}

export function pickOomLine(log: string, pid: number): string | undefined {
  return log
    .split("\n")
    .findLast((line) => /out of memory|oom-kill/i.test(line) && new RegExp(`\\b${pid}\\b`).test(line))
    ?.trim();
}

function quietly<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
