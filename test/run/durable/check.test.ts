// Checks without side effects what a new version of an agent would do to its open runs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { expect, test } from "vitest";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { sleep } from "../../../src/run/engine/scope.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { runCli } from "../run-cli.ts";
import { call, script } from "./models.ts";
import { processesOf } from "./processes.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const LINES = [[call("find", {})], [call("nap", {}, "second")], "done"];

function version(
  journal: ReturnType<typeof createMemoryJournal>,
  {
    instructions = "be brief",
    without = "",
    onChange = "continue" as "continue" | "pin",
    prompt = "go",
  } = {},
) {
  const did: string[] = [];
  const nap = tool({ inputSchema: anything, execute: () => sleep(86_400_000) });
  const find = tool({ inputSchema: anything, execute: () => did.push("find") });
  const tools = Object.fromEntries(Object.entries({ find, nap }).filter(([name]) => name !== without));
  const model = script(LINES);
  const agent = new ToolLoopAgent({
    id: "napper",
    model,
    tools,
    instructions,
    stopWhen: isStepCount(9),
    prepareCall: (call) => ({ ...call, prompt }) as never,
  });
  const store = { log: createRunLog({ ...journal }, { machine: processesOf(1) }) };
  const options = { store, effects: { nap: "nested" } as never, recover: false, onChange };
  return { agent: durable(agent, options), model, did };
}

test.each(["generate", "stream"] as const)(
  "open runs of a changed agent are checked without acting, %s",
  async (mode) => {
    const journal = createMemoryJournal();
    const first = version(journal);
    if (mode === "generate") {
      await expect(first.agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
        code: "RUN_WAITING",
      });
    } else await (await first.agent.stream({ prompt: "go", runId: "r" })).outcome;
    const before = await journal.readEntries("r");
    const run = { runId: "r", status: "waiting", step: 2 };
    const check = async (change: Parameters<typeof version>[1]) => {
      const { agent, model, did } = version(journal, change);
      const checked = await agent.check();
      expect([model.asked, did]).toEqual([[], []]);
      return checked;
    };
    expect(await check({})).toEqual([{ ...run, verdict: "same", problems: [] }]);
    expect(await check({ instructions: "be verbose" })).toEqual([
      {
        ...run,
        verdict: "differs",
        problems: ["the model saw another prompt at step 1", "the model saw another prompt at step 2"],
      },
    ]);
    // An older message of the same length.
    expect(await check({ prompt: "no" })).toMatchObject([
      { problems: ["the model saw another prompt at step 1", "the model saw another prompt at step 2"] },
    ]);
    expect(await check({ without: "nap" })).toMatchObject([
      {
        verdict: "differs",
        problems: expect.arrayContaining([expect.stringContaining("no longer has the tool nap")]),
      },
    ]);
    expect(await check({ instructions: "other", onChange: "pin" })).toMatchObject([{ verdict: "stuck" }]);
    expect(await journal.readEntries("r")).toEqual(before);
  },
);

test("`lazarus runs check` checks the agents that a module exports, and keeps them from recovering", async () => {
  const home = mkdtempSync(join(tmpdir(), "lazarus-check-"));
  try {
    const path = join(home, "agents.mjs");
    writeFileSync(
      path,
      `const isChecked = globalThis[Symbol.for("lazarus.runs.checking")] === true;
       const problems = isChecked ? ["it would end after step 1 of 2"] : [];
       const run = { runId: "r", status: "waiting", step: 2, verdict: "stuck", problems };
       const check = async () => [run];
       export const napper = { version: "agent-v1", id: "napper", check, recover() {} };
       export const schema = { check: () => ({ _zod: {} }), version: { major: 4 } };`,
    );
    const checked = await runCli(home, ["runs", "check", path]);
    expect(checked).toMatchObject({
      exit: 3,
      err: expect.stringContaining("r: it would end after step 1 of 2"),
    });
    expect(checked.out).toMatch(/r\s+napper\s+waiting\s+2\s+stuck/);
    expect(await runCli(home, ["runs", "check", "nope.ts"])).toMatchObject({ exit: 6 });
    writeFileSync(join(home, "empty.mjs"), "export const x = 1;");
    expect(await runCli(home, ["runs", "check", "empty.mjs"])).toMatchObject({ exit: 2 });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
