// Concurrent processes: exactly one takes a resume lock, free or left by a dead owner, and no update is lost.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ownerFields, ownerOf, selfOwner } from "../../src/flow/locking/owner.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createFixture, type Fixture, runLine } from "./fixture.ts";

const RACERS = 50;
const START = "flow start -w report --agent anna --idempotency k --step fetch".split(" ");

async function started(fixture: Fixture): Promise<void> {
  const { code, stderr } = await runLine(START, { cwd: fixture.root });
  expect(stderr).toBe("");
  expect(code).toBe(0);
}

/** Fifty live owners: each racer has its own name. */
async function race(fixture: Fixture): Promise<{ winners: number; losers: number }> {
  const endings = await Promise.all(
    Array.from({ length: RACERS }, (_, i) =>
      runLine(["flow", "resume", "-w", "report", "--owner", `racer-${i}`], { cwd: fixture.root }),
    ),
  );
  for (const { code, stderr } of endings) expect([0, 10], stderr).toContain(code);
  const winners = endings.filter(
    ({ code, stdout }) => code === 0 && stdout.includes('"workflowId": "report"'),
  ).length;
  return { winners, losers: endings.filter(({ code }) => code === 10).length };
}

describe(`${RACERS} processes race for one resume lock`, () => {
  it("one takes a free lock", async () => {
    using fixture = createFixture();
    await started(fixture);
    expect(await race(fixture)).toEqual({ winners: 1, losers: RACERS - 1 });
  });

  it("one takes over from a dead owner who also left the mutex", async () => {
    using fixture = createFixture();
    await started(fixture);
    const dead = { ...selfOwner(systemMachine.processes), pid: 2 ** 22 + 7 };
    expect(ownerOf(systemMachine.processes, dead.pid)).toBeUndefined();
    const directory = join(fixture.root, "memory", "checkpoints");
    writeFileSync(join(directory, "report.lock"), JSON.stringify({ ...ownerFields(dead), takenAt: "then" }));
    // Killed in the middle of an update: its mutex stays, for one of the racers to remove.
    const killed = await runLine(["flow", "update", "-w", "report", "--step", "x"], {
      cwd: fixture.root,
      crashAt: "flow.mutex.taken",
    });
    expect(killed.signal).toBe("SIGKILL");
    expect(readdirSync(directory)).toContain(".report.guard");
    expect(await race(fixture)).toEqual({ winners: 1, losers: RACERS - 1 });
    expect(readdirSync(directory)).not.toContain(".report.guard");
  });
});

it("twenty concurrent updates lose no step", async () => {
  using fixture = createFixture();
  await started(fixture);
  const steps = Array.from({ length: 20 }, (_, i) => `step-${i}`);
  const endings = await Promise.all(
    steps.map((step) =>
      runLine(["flow", "update", "-w", "report", "--complete", step], { cwd: fixture.root }),
    ),
  );
  expect(endings.map(({ code }) => code)).toEqual(steps.map(() => 0));
  expect([...(fixture.read("report").completedSteps as string[])].sort()).toEqual([...steps].sort());
});

it("ten concurrent calls with one key run the command once", async () => {
  using fixture = createFixture();
  await started(fixture);
  const words = [
    "flow",
    "once",
    "-w",
    "report",
    "--key",
    "k",
    "--",
    "/bin/sh",
    "-c",
    "echo x >> log; sleep 0.2",
  ];
  const endings = await Promise.all(Array.from({ length: 10 }, () => runLine(words, { cwd: fixture.root })));
  for (const { code } of endings) expect([0, 10]).toContain(code);
  const { stdout } = await runLine(["flow", "once", "-w", "report", "--key", "cat", "--", "cat", "log"], {
    cwd: fixture.root,
  });
  expect(stdout).toBe("x\n");
});
