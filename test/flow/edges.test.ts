// Edge cases of flows: content that readers would reject is not written, a stuck or oddly named flow does not hide others,
// and names that have a meaning to Lazarus can be used as workflow names.
import { mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeFlow, execPlan, listFlows, pruneFlows, resumeFlow, startFlow } from "../../src/flow/index.ts";
import { ownerMark } from "../../src/flow/locking/owner.ts";
import { parsePlan } from "../../src/flow/operations/plan.ts";
import type { LazarusError } from "../../src/platform/errors.ts";
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const failure = (work: Promise<unknown>): Promise<LazarusError> =>
  work.then(
    () => {
      throw new Error("it succeeded");
    },
    (error) => error,
  );

describe("content that readers would reject is not written", () => {
  it.for([3e6, 1e12, 1e300, Number.NaN, -1])("an expiry in %d days", async (ttlDays) => {
    using fixture = createFixture();
    const me = fixture.owner();
    const started = await failure(startFlow(fixture.workspace, { ...REPORT, ttlDays }, { me }));
    expect(started).toMatchObject({ code: "USAGE", message: expect.stringContaining("nothing was written") });
    expect(listFlows(fixture.root)).toEqual({ flows: [], bad: [] });
    await startFlow(fixture.workspace, { ...REPORT, ttlDays: 36_500 }, { me });
    const changed = await failure(changeFlow(fixture.workspace, REPORT, { ttlDays }, me));
    expect(changed.code).toBe("USAGE");
    expect(listFlows(fixture.root)).toMatchObject({ flows: [{}], bad: [] });
  });

  it("a flow of more than a megabyte, in any encoding", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const before = fixture.read("report");
    // 200,000 characters of six bytes each, since the file is ASCII.
    const changed = await failure(changeFlow(fixture.workspace, REPORT, { step: "é".repeat(200_000) }, me));
    expect(changed).toMatchObject({ code: "USAGE", message: expect.stringContaining("nothing was written") });
    expect(fixture.read("report")).toEqual(before);
    const steps = Array.from({ length: 9000 }, (_, i) => `  - {key: "${i}${"x".repeat(150)}", run: "true"}`);
    const plan = await parsePlan(`workflow: long\nsteps:\n${steps.join("\n")}`, "long.yaml");
    expect(await failure(exec(fixture, plan))).toMatchObject({ code: "USAGE" });
    expect(listFlows(fixture.root)).toMatchObject({ flows: [{}], bad: [] });
  });
});

const exec = (fixture: Fixture, plan: Awaited<ReturnType<typeof parsePlan>>, more: object = {}) =>
  execPlan(fixture.workspace, { plan, cwd: fixture.root, env: {}, me: fixture.owner(), ...more });

describe("exec", () => {
  it("does not report success when it cannot run anything", async () => {
    using fixture = createFixture();
    const plan = await parsePlan("workflow: brief\nttlDays: 1e-9\nsteps: [{key: a, run: 'true'}]", "p.yaml");
    expect(await failure(exec(fixture, plan))).toMatchObject({
      code: "FLOW_FINISHED",
      message: expect.stringMatching(/brief cannot be run: expired at .*; nothing was run/),
    });
    expect(fixture.read("brief").status).toBe("in_progress");
  });

  it("reports a step that a signal ended as unknown, immediately; both commands of the hint work", async () => {
    using fixture = createFixture();
    const yaml =
      "workflow: x\nsteps: [{key: send, run: 'echo x >> log; kill -9 $$'}, {key: end, run: 'true'}]";
    const plan = await parsePlan(yaml, "p.yaml");
    for (const more of [{}, {}, { retryUnknown: ["send"] }]) {
      expect(await failure(exec(fixture, plan, more))).toMatchObject({
        code: "FLOW_OUTCOME_UNKNOWN",
        message: expect.stringContaining('x: the outcome of "send" is unknown'),
        hint: expect.stringContaining("lazarus flow update -w x --complete send"),
        details: { key: "send" },
      });
      expect(fixture.read("x")).toMatchObject({
        status: "blocked",
        notes: "step send: its outcome is unknown",
      });
    }
    expect(readFileSync(join(fixture.root, "log"), "utf8")).toBe("x\nx\n");
    await changeFlow(fixture.workspace, { workflow: "x" }, { complete: ["send"] }, fixture.owner());
    expect(await exec(fixture, plan)).toMatchObject({ outcome: "done" });
  });

  it("runs a step again that a signal ended, if it is safe to repeat", async () => {
    using fixture = createFixture();
    const step = "{key: get, retry: safe, run: 'test -e log || { touch log; kill -9 $$; }'}";
    const plan = await parsePlan(`workflow: y\nsteps: [${step}]`, "p.yaml");
    expect(await exec(fixture, plan)).toMatchObject({ outcome: "failed", exitCode: 137 });
    expect(await exec(fixture, plan)).toMatchObject({ outcome: "done" });
  });

  it("refuses --retry-unknown for an unknown step before anything runs", async () => {
    using fixture = createFixture();
    const plan = await parsePlan("workflow: x\nsteps: [{key: send, run: 'true'}]", "p.yaml");
    expect(await failure(exec(fixture, plan, { retryUnknown: ["sned"] }))).toMatchObject({
      code: "USAGE",
      message: expect.stringContaining('no step "sned"'),
      hint: expect.stringContaining("send"),
    });
    expect(listFlows(fixture.root).flows).toEqual([]);
  });
});

describe("names", () => {
  it.for(["start", "alerts", "audit", "guard", "x.lock", "x.json", "constructor"])(
    "%s is a workflow like any other",
    async (workflow) => {
      using fixture = createFixture();
      const me = fixture.owner();
      await startFlow(fixture.workspace, { ...REPORT, workflow }, { me });
      expect((await resumeFlow(fixture.workspace, { me })).found?.document.workflowId).toBe(workflow);
      await changeFlow(fixture.workspace, { workflow }, { status: "done" }, me);
      await fixture.machine.clock.advance(1);
      const { removed } = await pruneFlows(fixture.workspace, { me, keepDays: 0, dryRun: false });
      expect(removed).toMatchObject([{ workflowId: workflow }]);
    },
  );

  it("of agents that are not valid ids do not hide flows", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, agent: "ben" }, { me, perAgent: true });
    const theirs = join(fixture.root, "agents", "Anna Ö; x", "memory", "checkpoints");
    mkdirSync(theirs, { recursive: true });
    writeFileSync(join(theirs, "bad.json"), "junk");
    expect(listFlows(fixture.root)).toMatchObject({ flows: [{}], bad: [{ workflowId: "bad" }] });
    const change = changeFlow(fixture.workspace, { workflow: "bad" }, { step: "x" }, me);
    expect(await failure(change)).toMatchObject({
      code: "FLOW_DAMAGED",
      // Quoted for the shell, so that it can be pasted.
      hint: expect.stringContaining(`'${join(theirs, "bad.json")}'`),
    });
  });

  it("are quoted for the shell in hints", async () => {
    using fixture = createFixture();
    const workflow = "x; touch pwned";
    fixture.write(`memory/checkpoints/${workflow}.json`, "junk");
    const change = changeFlow(fixture.workspace, { workflow }, { step: "x" }, fixture.owner());
    expect((await failure(change)).hint).toContain(`--workflow '${workflow}'`);
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const lock = { owner: "a\nb", pid: 7, processStart: "1", bootId: "b", host: "h; touch pwned" };
    fixture.write("memory/checkpoints/report.lock", JSON.stringify(lock));
    const locked = await failure(resumeFlow(fixture.workspace, { workflow: "report", me }));
    expect(locked.hint).toContain("on 'h; touch pwned';");
    expect(locked.message).toContain('"a\\nb", process 7 on "h; touch pwned"');
  });
});

describe("one flow does not hide others from resume", () => {
  it("when its name is too long for a mutex", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, workflow: "zz" }, { me });
    const long = "a".repeat(250);
    fixture.write(`memory/checkpoints/${long}.json`, "junk");
    const { found, bad } = await resumeFlow(fixture.workspace, { me });
    expect(found?.document.workflowId).toBe("zz");
    expect(bad).toMatchObject([{ workflowId: long, quarantined: false }]);
    // A name that is too long for the file system is an invalid id, not an I/O error.
    const change = changeFlow(fixture.workspace, { workflow: "é".repeat(190) }, { step: "x" }, me);
    expect((await failure(change)).code).toBe("FLOW_ID_INVALID");
  });

  it("when its mutex is stuck; if it is the only flow, resume reports busy and not NO_CHECKPOINT", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    symlinkSync("not a mark", join(dirname(fixture.file("report")), ".report.guard"));
    const advancingTime = async <T>(work: Promise<T>): Promise<T> => {
      let over = false;
      const ended = work.finally(() => {
        over = true;
      });
      ended.catch(() => undefined);
      while (!over) await fixture.machine.clock.advance(1000);
      return ended;
    };
    expect(await failure(advancingTime(resumeFlow(fixture.workspace, { me })))).toMatchObject({
      code: "FLOW_BUSY",
      hint: expect.stringMatching(/if it is not needed: rm .*\.report\.guard$/),
    });
    await startFlow(fixture.workspace, { ...REPORT, workflow: "zz", idempotency: "z" }, { me });
    const { found, passedOver } = await advancingTime(resumeFlow(fixture.workspace, { me }));
    expect(found?.document.workflowId).toBe("zz");
    expect(passedOver).toMatchObject([{ workflowId: "report", why: "failed" }]);
  });

  it("a mutex that keeps changing hands is not stuck, however long it takes", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, REPORT, { me });
    const mutex = join(dirname(fixture.file("report")), ".report.guard");
    symlinkSync(ownerMark(fixture.owner()), mutex);
    const update = changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, me);
    for (let holder = 0; holder < 5; holder += 1) {
      await fixture.machine.clock.advance(6000);
      unlinkSync(mutex);
      if (holder < 4) symlinkSync(ownerMark(fixture.owner()), mutex);
    }
    await fixture.machine.clock.advance(1000);
    expect((await update).document.completedSteps).toEqual(["fetch"]);
  });
});

describe("a start", () => {
  it("over a leftover lock prints a hint that works", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    fixture.write("memory/checkpoints/report.lock", "2026-11-15T23:53:01.123456+00:00");
    const refused = await failure(startFlow(fixture.workspace, REPORT, { me }));
    expect(refused).toMatchObject({
      code: "FLOW_LOCKED",
      hint: expect.stringMatching(/the same command with --force$/),
    });
    await startFlow(fixture.workspace, REPORT, { me, force: true });
    expect((await resumeFlow(fixture.workspace, { me })).found?.lock.verdict).toBe("free");
  });
});

describe("prune", () => {
  it("lists what it will keep in a dry run", async () => {
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, ttlDays: 0 }, { me });
    const lock = { ...me, owner: null, takenAt: "then" };
    fixture.write("memory/checkpoints/report.lock", JSON.stringify(lock));
    const prune = (dryRun: boolean) =>
      pruneFlows(fixture.workspace, { me: fixture.owner(), keepDays: 0, dryRun });
    expect(await prune(true)).toMatchObject({ removed: [], held: [{ workflowId: "report" }] });
    expect(await prune(false)).toMatchObject({ removed: [], held: [{ workflowId: "report" }] });
    fixture.machine.processes.end(me.pid);
    expect(await prune(true)).toMatchObject({ removed: [{ workflowId: "report" }], held: [] });
    expect(await prune(false)).toMatchObject({ removed: [{ workflowId: "report" }], held: [] });
  });
});
