// Process identity, on the real process table; pid reuse and reboots are simulated.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createSimulatedProcesses } from "../testing/simulated-processes.ts";
import { isAlive, pidInUse, systemProcesses } from "./process-identity.ts";

describe("this machine's processes", () => {
  it("gives this process one stable identity", () => {
    const self = systemProcesses.self();
    expect(self.pid).toBe(process.pid);
    expect(self.startTime).toMatch(/\S/);
    expect(systemProcesses.self()).toEqual(self);
    expect(systemProcesses.identify(process.pid)).toEqual(self);
    expect(isAlive(systemProcesses, self)).toBe(true);
    expect(pidInUse(process.pid)).toBe(true);
  });

  it("identifies a child while it runs and not afterwards", async () => {
    const child = spawn("sleep", ["30"]);
    await once(child, "spawn");
    const identity = systemProcesses.identify(child.pid!);
    expect(identity).toMatchObject({ pid: child.pid, bootId: systemProcesses.bootId() });
    expect(identity!.startTime).not.toBe(systemProcesses.self().startTime);
    expect(isAlive(systemProcesses, identity!)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isAlive(systemProcesses, identity!)).toBe(false);
  });

  it("finds no process under the pid of a dead one", () => {
    const { pid } = spawnSync("true");
    expect(systemProcesses.identify(pid)).toBeUndefined();
    expect(pidInUse(pid)).toBe(false);
  });

  it("does not count a zombie as alive", async () => {
    // The shell starts a child, then becomes a program that never reaps it.
    const parent = spawn("sh", ["-c", "cat <&3 >/dev/null & echo $!; exec cat"], {
      stdio: ["pipe", "pipe", "inherit", "pipe"],
    });
    try {
      const [line] = await once(parent.stdout!, "data");
      const pid = Number(String(line));
      const identity = systemProcesses.identify(pid);
      expect(isAlive(systemProcesses, identity!)).toBe(true);
      parent.stdin!.write("ping");
      await once(parent.stdout!, "data");
      (parent.stdio[3] as Writable).end();
      await expect.poll(() => systemProcesses.identify(pid), { timeout: 60_000 }).toBeUndefined();
      expect(pidInUse(pid), "its pid is still taken").toBe(true);
      expect(isAlive(systemProcesses, identity!)).toBe(false);
    } finally {
      parent.kill("SIGKILL");
    }
  });

  it("is not misled by a command name with parentheses and spaces", async () => {
    const child = spawn(process.execPath, [
      "-e",
      "process.title='a) R 1 (b'; console.log('named'); setTimeout(()=>{},30000)",
    ]);
    try {
      await once(child.stdout, "data");
      const identity = systemProcesses.identify(child.pid!);
      expect(identity?.startTime).toMatch(process.platform === "linux" ? /^\d+$/ : /\S/);
      expect(BigInt(identity!.startTime)).toBeGreaterThanOrEqual(BigInt(systemProcesses.self().startTime));
    } finally {
      child.kill("SIGKILL");
    }
  });
});

describe("isAlive", () => {
  it("distinguishes a process from a later one with the same pid", () => {
    const processes = createSimulatedProcesses();
    const agent = processes.start();
    expect(isAlive(processes, agent)).toBe(true);
    const successor = processes.reuse(agent.pid);
    expect(isAlive(processes, agent)).toBe(false);
    expect(isAlive(processes, successor)).toBe(true);
  });

  it("distinguishes a process from one with the same pid and start time after a reboot", () => {
    const processes = createSimulatedProcesses();
    const agent = processes.start();
    processes.reboot();
    const successor = processes.start(agent.pid);
    expect(successor.startTime).toBe(agent.startTime);
    expect(isAlive(processes, agent)).toBe(false);
  });

  it("is false for a process that has ended", () => {
    const processes = createSimulatedProcesses();
    const agent = processes.start();
    processes.end(agent.pid);
    expect(isAlive(processes, agent)).toBe(false);
  });
});
