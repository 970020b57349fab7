// Traces of the kernel's OOM killer: the counter of our control group, and the kernel log where it is readable.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { quietly } from "../../platform/errors.ts";

/** OOM kills in the control group of this process and below; null when the counter cannot be read. */
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

/** The kernel log's line about this process; undefined when there is none or the log is not readable. */
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
