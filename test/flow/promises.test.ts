// The four promises of restart-safe workflows, by name, and related behavior.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  changeFlow,
  checkFlows,
  listFlows,
  pruneFlows,
  releaseFlow,
  resumeFlow,
  runOnce,
  startFlow,
} from "../../src/flow/index.ts";
import type { LazarusError } from "../../src/platform/errors.ts";
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

describe("the four promised checks", () => {
  it("resume after a mid-work restart continues at the last completed step", async () => {
    using fixture = createFixture();
    const first = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me: first });
    await resumeFlow(fixture.workspace, { me: first });
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, first);
    fixture.machine.processes.reboot();
    const { found } = await resumeFlow(fixture.workspace, { me: fixture.owner() });
    expect(found?.document).toMatchObject({
      completedSteps: ["fetch"],
      currentStep: "write",
      remainingSteps: ["write", "send"],
    });
    expect(found?.lock.verdict).toBe("dead");
  });

  it("no duplicate side effect", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const log = join(fixture.root, "log");
    const once = () =>
      runOnce(fixture.workspace, {
        workflow: "report",
        key: "send",
        command: ["/bin/sh", "-c", `echo sent | tee -a '${log}'`],
        cwd: fixture.root,
        env: {},
        me,
      });
    expect(await once()).toMatchObject({ outcome: "ran", exitCode: 0, stdout: { head: "sent\n" } });
    expect(await once()).toMatchObject({ outcome: "replayed", exitCode: 0, stdout: { head: "sent\n" } });
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
    expect(await once()).toMatchObject({ outcome: "replayed" });
    expect(readFileSync(log, "utf8")).toBe("sent\n");
    await expect(startFlow(fixture.workspace, REPORT, { me, force: true })).rejects.toMatchObject({
      code: "FLOW_ALREADY_DONE",
    });
  });

  it("the stale check alerts only past its threshold", async () => {
    using fixture = createFixture();
    const { clock } = fixture.machine;
    await startFlow(fixture.workspace, REPORT, { me: fixture.owner() });
    const check = () => checkFlows(fixture.root, clock.nowMs(), 10);
    expect(check()).toMatchObject({ status: "ok", count: 0 });
    await clock.advance(10 * MINUTE_MS);
    expect(check()).toMatchObject({ status: "ok", count: 0 });
    await clock.advance(1);
    expect(check()).toMatchObject({
      status: "alert",
      count: 1,
      findings: [{ workflowId: "report", agentId: "anna", file: fixture.file("report"), ageMinutes: 10 }],
    });
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, fixture.owner());
    expect(check().status).toBe("ok");
    await clock.advance(11 * MINUTE_MS);
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, fixture.owner());
    expect(check().status).toBe("ok");
  });

  it("old checkpoints expire", async () => {
    using fixture = createFixture();
    const { clock } = fixture.machine;
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, ttlDays: 7 }, { me });
    await clock.advance(7 * DAY_MS - 1);
    expect((await resumeFlow(fixture.workspace, { me })).found).toBeDefined();
    await releaseFlow(fixture.workspace, REPORT, me);
    await clock.advance(1);
    const { found, passedOver } = await resumeFlow(fixture.workspace, { me });
    expect(found).toBeUndefined();
    expect(passedOver).toMatchObject([{ workflowId: "report", why: "expired" }]);
    expect(checkFlows(fixture.root, clock.nowMs(), 10).status).toBe("ok");
    expect((await prune(fixture)).removed).toMatchObject([{ workflowId: "report", why: "expired" }]);
    expect(listFlows(fixture.root).flows).toEqual([]);
    await expect(startFlow(fixture.workspace, REPORT, { me })).rejects.toMatchObject({ code: "FLOW_EXISTS" });
  });
});

const prune = (fixture: Fixture, keepDays = 30) =>
  pruneFlows(fixture.workspace, { me: fixture.owner(), keepDays, dryRun: false });

describe("used keys", () => {
  it("survive prune", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
    await fixture.machine.clock.advance(8 * DAY_MS);
    expect((await prune(fixture)).removed).toHaveLength(1);
    await expect(
      startFlow(fixture.workspace, { ...REPORT, workflow: "again" }, { me }),
    ).rejects.toMatchObject({
      code: "FLOW_ALREADY_DONE",
      message: expect.stringContaining("report"),
    });
    await startFlow(fixture.workspace, { ...REPORT, idempotency: "report-2" }, { me });
  });

  it("include the whole document of unfinished work, which the hint shows", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, notes: "see \u009b31m" }, { me });
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, me);
    const before = fixture.read("report");
    // The clock is wrong for a moment, in which cron runs a prune.
    await fixture.machine.clock.advance(20 * 365 * DAY_MS);
    expect((await prune(fixture)).removed).toHaveLength(1);
    const refused = await startFlow(fixture.workspace, REPORT, { me }).catch((error: LazarusError) => error);
    const command = /^see what it had done: (.+); then start over with --force$/.exec(
      (refused as LazarusError).hint!,
    )![1]!;
    const shown = spawnSync("/bin/sh", ["-c", command], { encoding: "utf8" }).stdout;
    expect(JSON.parse(shown).flow).toEqual(before);
    expect(shown).not.toContain("\u009b");
  });

  it("survive a new run of the same name", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
    await startFlow(fixture.workspace, { ...REPORT, idempotency: "report-2" }, { me });
    await expect(startFlow(fixture.workspace, { ...REPORT, workflow: "x" }, { me })).rejects.toMatchObject({
      code: "FLOW_ALREADY_DONE",
    });
  });

  it("are read despite a torn line in the file", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
    await prune(fixture, 0);
    await fixture.machine.clock.advance(1);
    await prune(fixture, 0);
    const file = join(fixture.root, "memory/checkpoints/.lazarus/tombstones.jsonl");
    writeFileSync(file, `${readFileSync(file, "utf8")}{"key":"ha`);
    await startFlow(fixture.workspace, { ...REPORT, idempotency: "k2" }, { me });
    await expect(startFlow(fixture.workspace, { ...REPORT, workflow: "x" }, { me })).rejects.toThrow(
      "already done",
    );
  });
});

describe("the resume lock", () => {
  it("prevents changes by others until it is released, even by complete and fail", async () => {
    using fixture = createFixture();
    const [me, other] = [fixture.owner(), fixture.owner()];
    await startFlow(fixture.workspace, REPORT, { me });
    for (const end of ["released", "failed", "done"] as const) {
      await resumeFlow(fixture.workspace, { workflow: "report", me });
      const change = changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, other);
      await expect(change).rejects.toMatchObject({
        code: "FLOW_LOCKED",
        hint: expect.stringContaining("--steal-lock"),
      });
      await expect(resumeFlow(fixture.workspace, { workflow: "report", me: other })).rejects.toMatchObject({
        code: "FLOW_LOCKED",
      });
      await expect(releaseFlow(fixture.workspace, REPORT, other)).rejects.toMatchObject({
        code: "FLOW_LOCKED",
      });
      if (end === "released") await releaseFlow(fixture.workspace, REPORT, me);
      else await changeFlow(fixture.workspace, REPORT, { status: end }, me);
      if (end !== "done") await changeFlow(fixture.workspace, REPORT, { status: "in_progress" }, other);
    }
  });

  it("can be stolen from a live owner, who is then locked out", async () => {
    using fixture = createFixture();
    const [me, other] = [fixture.owner(), fixture.owner()];
    await startFlow(fixture.workspace, REPORT, { me });
    await resumeFlow(fixture.workspace, { me });
    const { found } = await resumeFlow(fixture.workspace, { me: other, stealLock: true });
    expect(found?.lock.verdict).toBe("held");
    await expect(changeFlow(fixture.workspace, REPORT, { step: "x" }, me)).rejects.toMatchObject({
      code: "FLOW_LOCKED",
    });
  });

  it("can be taken by the flow's agent and by the agent it is handed off to", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, handoff: "ben" }, { me });
    const by = (agent: string) => resumeFlow(fixture.workspace, { agent, me });
    expect((await by("carl")).found).toBeUndefined();
    expect((await by("ben")).found?.document.workflowId).toBe("report");
    expect((await by("anna")).found?.document.workflowId).toBe("report");
  });
});

describe("flows of several agents", () => {
  it("are in separate directories and are selected by --agent", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const theirs = { ...REPORT, agent: "ben", idempotency: "b" };
    const { place } = await startFlow(fixture.workspace, theirs, { me, perAgent: true });
    expect(place.file).toBe(join(fixture.root, "agents/ben/memory/checkpoints/report.json"));
    const change = (agent?: string) =>
      changeFlow(fixture.workspace, { workflow: "report", agent }, { step: "x" }, me);
    await expect(change()).rejects.toMatchObject({ code: "FLOW_AMBIGUOUS" });
    expect((await change("ben")).place.file).toBe(place.file);
    expect(listFlows(fixture.root).flows).toHaveLength(2);
  });
});
