import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { posixSupport } from "../posix.ts";

const support = posixSupport();
const isLinux = process.platform === "linux" && support.ok;

async function startSleep(): Promise<ChildProcess & { pid: number }> {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  await once(child, "spawn");
  return child as ChildProcess & { pid: number };
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

it.skipIf(!isLinux)(
  "names the processes that have exited until they are removed, and no others",
  async () => {
    if (!support.ok) return;
    using set = support.posix.openProcessSet();
    const children = await Promise.all(Array.from({ length: 5 }, startSleep));
    const fds = children.map(({ pid }) => set.add(pid)!);
    expect(new Set(fds).size).toBe(5);
    expect(set.ended()).toEqual([]);

    await end(children[1]!);
    await end(children[3]!);
    expect([...set.ended()].sort()).toEqual([fds[1]!, fds[3]!].sort());
    expect([...set.ended()].sort()).toEqual([fds[1]!, fds[3]!].sort());

    set.remove(fds[1]!);
    expect(set.ended()).toEqual([fds[3]]);
    set.remove(fds[0]!);
    for (const at of [0, 2, 4]) await end(children[at]!);
    expect([...set.ended()].sort()).toEqual([fds[2]!, fds[3]!, fds[4]!].sort());
  },
);

it.skipIf(!isLinux)("has no descriptor for a process that is gone", async () => {
  if (!support.ok) return;
  using set = support.posix.openProcessSet();
  const child = await startSleep();
  await end(child);
  expect(set.add(child.pid)).toBeUndefined();
  expect(set.ended()).toEqual([]);
});
