// Edge cases of flows: content that readers would reject is not written, a stuck or oddly named flow does not hide others,
// and names that have a meaning to Lazarus can be used as workflow names.
import { mkdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeFlow, execPlan, listFlows, pruneFlows, resumeFlow, startFlow } from "../../src/flow/index.ts";
import { ownerMark } from "../../src/flow/locking/owner.ts";
import { parsePlan } from "../../src/flow/operations/plan.ts";
import type { LazarusError } from "../../src/platform/errors.ts";
import { createScene, REPORT, type Scene } from "./scene.ts";

const failure = (work: Promise<unknown>): Promise<LazarusError> =>
  work.then(
    () => {
      throw new Error("it succeeded");
    },
    (error) => error,
  );

describe("content that readers would reject is not written", () => {
  it.for([3e6, 1e12, 1e300, Number.NaN, -1])("an expiry in %d days", async (ttlDays) => {
    using scene = createScene();
    const me = scene.owner();
    const started = await failure(startFlow(scene.workspace, { ...REPORT, ttlDays }, { me }));
    expect(started).toMatchObject({ code: "USAGE", message: expect.stringContaining("nothing was written") });
    expect(listFlows(scene.root)).toEqual({ flows: [], bad: [] });
    await startFlow(scene.workspace, { ...REPORT, ttlDays: 36_500 }, { me });
    const changed = await failure(changeFlow(scene.workspace, REPORT, { ttlDays }, me));
    expect(changed.code).toBe("USAGE");
    expect(listFlows(scene.root)).toMatchObject({ flows: [{}], bad: [] });
  });

  it("a flow of more than a megabyte, in any encoding", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    const before = scene.read("report");
    // 200,000 characters; in ASCII, as the file is, six bytes each.
    const changed = await failure(changeFlow(scene.workspace, REPORT, { step: "é".repeat(200_000) }, me));
    expect(changed).toMatchObject({ code: "USAGE", message: expect.stringContaining("nothing was written") });
    expect(scene.read("report")).toEqual(before);
    const steps = Array.from({ length: 9000 }, (_, i) => `  - {key: "${i}${"x".repeat(150)}", run: "true"}`);
    const plan = await parsePlan(`workflow: long\nsteps:\n${steps.join("\n")}`, "long.yaml");
    expect(await failure(exec(scene, plan))).toMatchObject({ code: "USAGE" });
    expect(listFlows(scene.root)).toMatchObject({ flows: [{}], bad: [] });
  });
});

const exec = (scene: Scene, plan: Awaited<ReturnType<typeof parsePlan>>, more: object = {}) =>
  execPlan(scene.workspace, { plan, cwd: scene.root, env: {}, me: scene.owner(), ...more });

describe("exec", () => {
  it("does not report success when it cannot run anything", async () => {
    using scene = createScene();
    const plan = await parsePlan("workflow: brief\nttlDays: 1e-9\nsteps: [{key: a, run: 'true'}]", "p.yaml");
    expect(await failure(exec(scene, plan))).toMatchObject({
      code: "FLOW_FINISHED",
      message: expect.stringMatching(/brief cannot be run: expired at .*; nothing was run/),
    });
    expect(scene.read("brief").status).toBe("in_progress");
  });

  it("refuses --retry-unknown for an unknown step before anything runs", async () => {
    using scene = createScene();
    const plan = await parsePlan("workflow: x\nsteps: [{key: send, run: 'true'}]", "p.yaml");
    expect(await failure(exec(scene, plan, { retryUnknown: ["sned"] }))).toMatchObject({
      code: "USAGE",
      message: expect.stringContaining('no step "sned"'),
      hint: expect.stringContaining("send"),
    });
    expect(listFlows(scene.root).flows).toEqual([]);
  });
});

describe("names", () => {
  it.for(["start", "alerts", "audit", "guard", "x.lock", "x.json", "constructor"])(
    "%s is a workflow like any other",
    async (workflow) => {
      using scene = createScene();
      const me = scene.owner();
      await startFlow(scene.workspace, { ...REPORT, workflow }, { me });
      expect((await resumeFlow(scene.workspace, { me })).found?.document.workflowId).toBe(workflow);
      await changeFlow(scene.workspace, { workflow }, { status: "done" }, me);
      await scene.machine.clock.advance(1);
      const { removed } = await pruneFlows(scene.workspace, { me, keepDays: 0, dryRun: false });
      expect(removed).toMatchObject([{ workflowId: workflow }]);
    },
  );

  it("of agents that are not valid ids do not hide flows", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, { ...REPORT, agent: "ben" }, { me, perAgent: true });
    const theirs = join(scene.root, "agents", "Anna Ö; x", "memory", "checkpoints");
    mkdirSync(theirs, { recursive: true });
    writeFileSync(join(theirs, "bad.json"), "junk");
    expect(listFlows(scene.root)).toMatchObject({ flows: [{}], bad: [{ workflowId: "bad" }] });
    const change = changeFlow(scene.workspace, { workflow: "bad" }, { step: "x" }, me);
    expect(await failure(change)).toMatchObject({
      code: "FLOW_DAMAGED",
      // To be pasted: quoted, as a shell reads it.
      hint: expect.stringContaining(`'${join(theirs, "bad.json")}'`),
    });
  });

  it("are quoted for the shell in hints", async () => {
    using scene = createScene();
    const workflow = "x; touch pwned";
    scene.write(`memory/checkpoints/${workflow}.json`, "junk");
    const change = changeFlow(scene.workspace, { workflow }, { step: "x" }, scene.owner());
    expect((await failure(change)).hint).toContain(`--workflow '${workflow}'`);
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    const lock = { owner: "a\nb", pid: 7, processStart: "1", bootId: "b", host: "h; touch pwned" };
    scene.write("memory/checkpoints/report.lock", JSON.stringify(lock));
    const locked = await failure(resumeFlow(scene.workspace, { workflow: "report", me }));
    expect(locked.hint).toContain("on 'h; touch pwned';");
    expect(locked.message).toContain('"a\\nb", process 7 on "h; touch pwned"');
  });
});

describe("one flow does not hide others from resume", () => {
  it("when its name is too long for a mutex", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, { ...REPORT, workflow: "zz" }, { me });
    const long = "a".repeat(250);
    scene.write(`memory/checkpoints/${long}.json`, "junk");
    const { found, bad } = await resumeFlow(scene.workspace, { me });
    expect(found?.document.workflowId).toBe("zz");
    expect(bad).toMatchObject([{ workflowId: long, quarantined: false }]);
    // A name that cannot exist is unknown, and no riddle of the file system.
    const change = changeFlow(scene.workspace, { workflow: "é".repeat(190) }, { step: "x" }, me);
    expect((await failure(change)).code).toBe("FLOW_ID_INVALID");
  });

  it("when its mutex is stuck; if it is the only flow, resume reports busy and not NO_CHECKPOINT", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    symlinkSync("made by a stranger", join(dirname(scene.file("report")), ".report.guard"));
    const patiently = async <T>(work: Promise<T>): Promise<T> => {
      let over = false;
      const ended = work.finally(() => {
        over = true;
      });
      ended.catch(() => undefined);
      while (!over) await scene.machine.clock.advance(1000);
      return ended;
    };
    expect(await failure(patiently(resumeFlow(scene.workspace, { me })))).toMatchObject({
      code: "FLOW_BUSY",
      hint: expect.stringMatching(/if it is not needed: rm .*\.report\.guard$/),
    });
    await startFlow(scene.workspace, { ...REPORT, workflow: "zz", idempotency: "z" }, { me });
    const { found, passedOver } = await patiently(resumeFlow(scene.workspace, { me }));
    expect(found?.document.workflowId).toBe("zz");
    expect(passedOver).toMatchObject([{ workflowId: "report", why: "failed" }]);
  });

  it("and a mutex that keeps changing hands is not stuck, however long it takes", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, REPORT, { me });
    const guard = join(dirname(scene.file("report")), ".report.guard");
    symlinkSync(ownerMark(scene.owner()), guard);
    const update = changeFlow(scene.workspace, REPORT, { complete: ["fetch"] }, me);
    for (let hand = 0; hand < 5; hand += 1) {
      await scene.machine.clock.advance(6000);
      unlinkSync(guard);
      if (hand < 4) symlinkSync(ownerMark(scene.owner()), guard);
    }
    await scene.machine.clock.advance(1000);
    expect((await update).document.completedSteps).toEqual(["fetch"]);
  });
});

describe("a start", () => {
  it("over a leftover lock prints a hint that works", async () => {
    using scene = createScene();
    const me = scene.owner();
    scene.write("memory/checkpoints/report.lock", "2026-11-15T23:53:01.123456+00:00");
    const refused = await failure(startFlow(scene.workspace, REPORT, { me }));
    expect(refused).toMatchObject({
      code: "FLOW_LOCKED",
      hint: expect.stringMatching(/the same command with --force$/),
    });
    await startFlow(scene.workspace, REPORT, { me, force: true });
    expect((await resumeFlow(scene.workspace, { me })).found?.lock.verdict).toBe("free");
  });
});

describe("prune", () => {
  it("lists what it will keep in a dry run", async () => {
    using scene = createScene();
    const me = scene.owner();
    await startFlow(scene.workspace, { ...REPORT, ttlDays: 0 }, { me });
    const lock = { ...me, owner: null, takenAt: "then" };
    scene.write("memory/checkpoints/report.lock", JSON.stringify(lock));
    const prune = (dryRun: boolean) =>
      pruneFlows(scene.workspace, { me: scene.owner(), keepDays: 0, dryRun });
    expect(await prune(true)).toMatchObject({ removed: [], held: [{ workflowId: "report" }] });
    expect(await prune(false)).toMatchObject({ removed: [], held: [{ workflowId: "report" }] });
    scene.machine.processes.end(me.pid);
    expect(await prune(true)).toMatchObject({ removed: [{ workflowId: "report" }], held: [] });
    expect(await prune(false)).toMatchObject({ removed: [{ workflowId: "report" }], held: [] });
  });
});
