import { describe, expect, it } from "vitest";
import { type Ancestor, chooseCaller, readAncestors } from "./caller.ts";

/** Nearest first; pids count down to 1. */
const chain = (...lines: string[]): Ancestor[] =>
  lines.map((line, i) => ({ pid: lines.length - i, args: line.split(" ") }));
const chosen = (...lines: string[]) => {
  const ancestors = chain(...lines);
  const pid = chooseCaller(ancestors);
  return lines[ancestors.findIndex((ancestor) => ancestor.pid === pid)];
};

describe("the caller is the nearest process that outlives its commands", () => {
  it("an agent that runs every command in its own shell", () => {
    expect(chosen("/bin/sh -c lazarus", "claude", "-zsh", "systemd")).toBe("claude");
    expect(chosen("/bin/bash -c -l source", "node /usr/lib/agent.js", "systemd")).toBe(
      "node /usr/lib/agent.js",
    );
    expect(chosen("bash -lc lazarus", "codex", "systemd")).toBe("codex");
    expect(chosen("bash -o pipefail -ec lazarus", "codex", "systemd")).toBe("codex");
    expect(chosen("busybox sh -c lazarus", "codex", "systemd")).toBe("codex");
  });

  it("a person's shell, and a script", () => {
    expect(chosen("-bash", "sshd", "systemd")).toBe("-bash");
    expect(chosen("/bin/sh ./nightly.sh", "cron", "systemd")).toBe("/bin/sh ./nightly.sh");
    expect(chosen("/bin/sh -e ./nightly.sh -c", "cron", "systemd")).toBe("/bin/sh -e ./nightly.sh -c");
  });

  it("not a wrapper, nor our own launcher", () => {
    expect(chosen("timeout 60 lazarus", "sh -c x", "claude", "systemd")).toBe("claude");
    expect(chosen("node /opt/lazarus.js flow", "npx lazarus", "claude", "systemd")).toBe("claude");
  });

  it("an agent that is its container's first process", () => {
    expect(chosen("sh -c lazarus", "node /app/agent.js")).toBe("node /app/agent.js");
  });

  it("the parent, if all ancestors up to init are short-lived", () => {
    expect(chosen("sh -c lazarus", "env A=b sh", "/sbin/init")).toBe("sh -c lazarus");
    expect(chosen("sh -c lazarus", "tini --")).toBe("sh -c lazarus");
    expect(chooseCaller([{ pid: 7, args: [] }])).toBe(7);
  });

  it("finds the ancestors of this process", () => {
    const ancestors = readAncestors(process.ppid);
    expect(ancestors[0]?.pid).toBe(process.ppid);
    expect(readAncestors(2 ** 30)).toEqual([{ pid: 2 ** 30, args: [] }]);
  });
});
