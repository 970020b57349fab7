import { describe, expect, test } from "vitest";
import { createSimulatedClock } from "../../testing/simulated-clock.ts";
import { nextCronTime } from "./cron.ts";
import { createSchedule } from "./runner.ts";

interface Job {
  name: string;
  cron: string;
  dueMs: number | null;
}

function bench(jobs: Job[], run: (job: Job) => unknown = () => {}) {
  const clock = createSimulatedClock();
  for (const job of jobs) job.dueMs ??= clock.nowMs();
  const ran: string[] = [];
  const warnings: string[] = [];
  const runner = createSchedule<Job>({
    clock,
    due: (nowMs) => jobs.filter(({ dueMs }) => dueMs !== null && dueMs <= nowMs),
    next: (job, nowMs) => nextCronTime(job.cron, nowMs),
    run: (job) => {
      ran.push(job.name);
      return run(job);
    },
    mark: (job, next) => {
      job.dueMs = next;
    },
    onWarning: (warning) => warnings.push(warning),
  });
  return { clock, runner, ran, warnings, jobs };
}

const job = (name: string, cron = "* * * * *"): Job => ({ name, cron, dueMs: null });

describe("schedule", () => {
  test("runs due jobs and records their next time", async () => {
    const { runner, jobs, clock } = bench([job("a", "0 6 * * *")]);
    const report = await runner.tick();
    expect(report.ran.length).toBe(1);
    expect(new Date(jobs[0]!.dueMs!).toISOString()).toBe("2026-11-16T06:00:00.000Z");
    expect((await runner.tick()).ran).toEqual([]);
    await clock.advance(24 * 3600_000);
    expect((await runner.tick()).ran.length).toBe(1);
  });
  test("an invalid expression skips only its job", async () => {
    const { runner, ran, warnings } = bench([job("bad", "not a cron"), job("good")]);
    const report = await runner.tick();
    expect(ran).toEqual(["good"]);
    expect(report.skipped.map(({ name }) => name)).toEqual(["bad"]);
    expect(warnings[0]).toContain("not a cron");
  });
  test("a failed run leaves its job due and does not stop the others", async () => {
    let broken = true;
    const { runner, ran, jobs } = bench([job("a"), job("b")], ({ name }) => {
      if (name === "a" && broken) throw undefined;
    });
    expect((await runner.tick()).failed.map(({ name }) => name)).toEqual(["a"]);
    expect(ran).toEqual(["a", "b"]);
    broken = false;
    await runner.tick();
    expect(ran).toEqual(["a", "b", "a"]);
    expect(jobs.every(({ dueMs }) => dueMs !== null)).toBe(true);
  });
  test("the next time is computed before the run, and a job that cannot be marked stays due", async () => {
    const order: string[] = [];
    const warnings: string[] = [];
    const runner = createSchedule<string>({
      clock: createSimulatedClock(),
      due: () => ["a", "b"],
      next: (name) => {
        order.push(`next ${name}`);
        return null;
      },
      run: (name) => void order.push(`run ${name}`),
      mark: (name) => {
        if (name === "a") throw new Error("no disk");
      },
      onWarning: (warning) => warnings.push(warning),
    });
    expect(await runner.tick()).toEqual({ ran: ["b"], failed: ["a"], skipped: [] });
    expect(order).toEqual(["next a", "run a", "next b", "run b"]);
    expect(warnings).toEqual(["job ran but was not marked: no disk"]);
  });
  test("a failing due() ends the pass; the loop continues", async () => {
    const clock = createSimulatedClock();
    let asked = 0;
    const warnings: string[] = [];
    const runner = createSchedule<Job>({
      ...{ clock, intervalMs: 1000, run: () => {}, mark: () => {}, next: () => null },
      due: () => {
        asked += 1;
        throw new Error("no database");
      },
      onWarning: (warning) => warnings.push(warning),
    });
    await expect(runner.tick()).rejects.toThrow("no database");
    const stop = new AbortController();
    const looping = runner.loop(stop.signal);
    await clock.advance(3500);
    stop.abort();
    await looping;
    expect(asked).toBe(5);
    expect(warnings.length).toBe(4);
  });
  test("cron expressions support time zones; an invalid one is named", () => {
    const noon = Date.UTC(2026, 6, 1, 12);
    expect(nextCronTime("0 9 * * *", noon, "America/New_York")).toBe(Date.UTC(2026, 6, 1, 13));
    expect(() => nextCronTime("61 * * * *", noon)).toThrow(/cron expression/);
  });
});
