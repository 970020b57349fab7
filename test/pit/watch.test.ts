// `lazarus watch`: agents that Lazarus did not start are saved when they end, and replaced where a command is given.
import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { otherSupervisor, waitForUnit } from "../../src/pit/watched.ts";
import { systemDisk } from "../../src/platform/disk.ts";
import type { RunProgram } from "../../src/service/plan.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

describe("a process", () => {
  let world: PitWorld;
  let agent: ChildProcess;
  beforeEach(async () => {
    world = createPitWorld();
    world.run(["init", "m1"]);
    agent = spawn("sleep", ["600"], { stdio: "ignore" });
    await world.openPit();
  });
  afterEach(async () => {
    agent.kill("SIGKILL");
    await world.close();
  });
  const watch = (...words: string[]) => world.run(["watch", "m1", `--pid=${agent.pid}`, ...words]);

  it("is saved when it is killed, and left alone without a command", async () => {
    expect(watch()).toMatchObject({ exit: 0, stdout: "m1\n" });
    expect(world.state("m1")).toBe("running");
    agent.kill("SIGKILL");
    await world.until("the checkpoint", () =>
      world.checkpoints("m1").some(({ reason }) => reason === "crash"),
    );
    await world.until("the decision", () => world.state("m1") === "dead");
    expect(world.log("m1")).toContain(`process ${agent.pid} has ended`);
  });

  it("is replaced by the command after --", async () => {
    world.write("home/config.json", '{"pit": {"backoff_seconds": [0]}}');
    expect(watch("--", "sh", "-c", "echo revived > done.txt")).toMatchObject({ exit: 0 });
    agent.kill("SIGKILL");
    await world.until("the revival", () => world.record("m1").life.epoch === 2);
    await world.until("its work", () => world.state("m1") === "finished");
    expect(world.read("home/missions/m1/worktree/done.txt")).toBe("revived\n");
  });

  it("has finished if its hooks said so", async () => {
    watch();
    const line = { at_ms: Date.now() + 60_000, epoch: 0, kind: "turn-end" };
    world.write("home/run/agents/m1/hooks.jsonl", `${JSON.stringify(line)}\n`);
    agent.kill("SIGKILL");
    await world.until("the end", () => world.state("m1") === "finished");
  });

  it("is ended by stop", async () => {
    watch();
    const ended = new Promise((resolve) => agent.once("exit", (_, signal) => resolve(signal)));
    expect(world.run(["stop", "m1"])).toMatchObject({ exit: 0 });
    expect(await ended).toBe("SIGTERM");
  });

  it("is ended by stop, even when its waiter was killed before it could pass a signal on", async () => {
    watch();
    const ended = new Promise((resolve) => agent.once("exit", (_, signal) => resolve(signal)));
    // Suspended, as while it starts: SIGTERM stays pending, and stop has to kill it.
    process.kill(world.life("m1").agent.pid, "SIGSTOP");
    expect(world.run(["stop", "m1", "--grace", "0"])).toMatchObject({ exit: 0 });
    expect(await ended).toBe("SIGTERM");
  });

  it("must exist, and one of the options is needed", () => {
    expect(world.run(["watch", "m1", "--pid=999999999"])).toMatchObject({ exit: 6 });
    expect(world.run(["watch", "m1"])).toMatchObject({ exit: 2 });
    expect(world.run(["watch", "m1", "--heartbeat"]).stderr).toContain("the pit saves m1 and alerts");
    expect(world.run(["watch", "m1", "--heartbeat", "--", "x"])).toMatchObject({ exit: 2 });
  });
});

describe("a unit", () => {
  const { clock } = createSimulatedMachine({ disk: systemDisk });
  const answering = (...states: string[]): RunProgram => {
    return () => ({
      code: 0,
      stderr: "",
      stdout: (states.length > 1 ? states.shift()! : states[0]!).replaceAll(" ", "\n"),
    });
  };
  const wait = (run: RunProgram, signal = new AbortController().signal) =>
    waitForUnit(clock, "bot.service", run, signal);

  it("ends with its result", async () => {
    expect(await wait(answering("LoadState=loaded ActiveState=failed Result=exit-code"))).toEqual({
      exitCode: 1,
      reason: "bot.service is failed (exit-code)",
    });
    expect(await wait(answering("LoadState=loaded ActiveState=inactive Result=success"))).toMatchObject({
      exitCode: 0,
    });
  });

  it("that is no longer known has not finished", async () => {
    expect(await wait(answering("LoadState=not-found ActiveState=inactive Result=success"))).toMatchObject({
      exitCode: 1,
    });
  });

  it("is stopped with its waiter", async () => {
    const commands: string[] = [];
    const run: RunProgram = (command) => {
      commands.push(command.join(" "));
      return { code: 0, stdout: "", stderr: "" };
    };
    expect(await wait(run, AbortSignal.abort())).toMatchObject({ exitCode: 0 });
    expect(commands).toEqual(["systemctl stop bot.service"]);
  });
});

it("leaves background sessions of Claude Code to their own service", () => {
  expect(otherSupervisor(1, () => ["HOME=/x", "CLAUDE_CODE_SESSION_KIND=bg"])).toContain("Claude");
  expect(otherSupervisor(1, () => ["HOME=/x"])).toBeUndefined();
});
