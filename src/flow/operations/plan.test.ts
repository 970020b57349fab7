import { describe, expect, it } from "vitest";
import { parsePlan } from "./plan.ts";

const GOOD = `
workflow: nightly
steps:
  - key: fetch
    run: curl example.org
    retry: safe
    env: { A: 1 }
  - key: send
    run: |
      ./send.sh
`;

describe("a plan", () => {
  it("is parsed with defaults", async () => {
    expect(await parsePlan(GOOD, "p.yaml")).toEqual({
      workflow: "nightly",
      agent: "exec",
      idempotency: "nightly",
      ttlDays: undefined,
      steps: [
        { key: "fetch", run: "curl example.org", retry: "safe", cwd: undefined, env: { A: "1" } },
        { key: "send", run: "./send.sh\n", retry: "never", cwd: undefined, env: {} },
      ],
    });
  });

  it.for([
    ["", "expected a mapping"],
    ["- a", "expected a mapping"],
    ["workflow: [", "p.yaml: "],
    ["steps: []", "workflow is missing"],
    ["workflow: ../x\nsteps: [{key: a, run: b}]", "workflow is missing or not a valid id"],
    ["workflow: x", "steps is missing"],
    ["workflow: x\nsteps: []", "steps is missing or empty"],
    ["workflow: x\nsteps: [{key: a}]", "steps[0].run is missing"],
    ['workflow: x\nsteps: [{key: a, run: "echo \\0"}]', "steps[0].run is missing or not a string"],
    ['workflow: x\nsteps: [{key: "\\0", run: a}]', "steps[0].key is missing"],
    ['workflow: x\nsteps: [{key: a, run: b, cwd: "\\0"}]', "steps[0].cwd is not a string"],
    ['workflow: x\nsteps: [{key: a, run: b, env: {A: "\\0"}}]', "steps[0].env.A is not a string"],
    ["workflow: x\nsteps: [{key: a, run: b, env: {'A=B': c}}]", `steps[0].env: "A=B" is not a variable name`],
    ["workflow: x\nsteps: [{key: a, run: b, env: {A: null}}]", "steps[0].env.A is not a string"],
    ["workflow: x\nsteps: [{key: a, run: b, env: {__proto__: {x: 1}}}]", "__proto__ is not a string"],
    [`workflow: ${"[".repeat(20_000)}`, "p.yaml: "],
    [`workflow: x\nsteps: [{key: a, run: "${"x".repeat(5_000_000)}"}]`, "more than the limit of 4194304"],
    ["workflow: x\nsteps: [{run: a}]", "steps[0].key is missing"],
    ["workflow: x\nsteps: [{key: a, run: b}, {key: a, run: c}]", 'steps[1].key "a" is used twice'],
    ["workflow: x\nsteps: [{key: a, run: b, retry: maybe}]", "retry is neither"],
    ["workflow: x\nsteps: [{key: a, run: b, rtry: safe}]", 'steps[0]: unknown key "rtry"'],
    ["workflow: x\nworkflow: y\nsteps: [{key: a, run: b}]", "unique"],
    [
      "a: &a [1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]",
      "alias",
    ],
  ])("is refused before anything runs: %.60j", async ([text, reason]) => {
    await expect(parsePlan(text!, "p.yaml")).rejects.toMatchObject({
      code: "FLOW_PLAN_INVALID",
      message: expect.stringContaining(reason!),
    });
  });
});
