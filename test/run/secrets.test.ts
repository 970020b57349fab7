// Secrets in a run: the tool receives them, the record does not, and the number removed is reported.
import { jsonSchema } from "ai";
import { describe, expect, test } from "vitest";
import { type Agent, recoverInterrupted, ShutdownError } from "../../src/run/index.ts";
import { bench, onWrite, passTime, records, restarted, tool } from "./bench.ts";
import type { Line } from "./scripted-model.ts";

const TOKEN = ["ghp", "1234567890abcdefghijklmnopqrstuvwx12"].join("_");
const open = { inputSchema: jsonSchema<Record<string, unknown>>({ type: "object" }) };
const push: Line = { calls: [{ tool: "push", input: { token: TOKEN } }] };

describe("secrets", () => {
  test("in the input of a call reach the tool but not the record", async () => {
    const got: unknown[] = [];
    const { executor, store } = bench([push, "pushed"]);
    const agent: Agent = {
      id: "a",
      tools: { push: tool("once", (input) => void got.push({ ...input }), open) },
    };
    const result = await executor.run(agent, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "pushed", steps: 2 });
    expect(got).toEqual([{ token: TOKEN }]);
    expect(await store.effects("r")).toMatchObject([{ state: "done", inputRedacted: true }]);
    expect(JSON.stringify(await store.load("r"))).not.toContain(TOKEN);
    expect(result.redactions).toBe(1);
  });

  test("in the input of a call are not replayed after a resume; the model is asked to repeat the call", async () => {
    const first = bench([push, "pushed"]);
    const stop = new AbortController();
    // The stop arrives while the start of the call is written, before the tool is called.
    const restore = onWrite(first.store, async (write, proceed) => {
      const verdict = await proceed();
      if (records(write, "started")) stop.abort(new ShutdownError());
      return verdict;
    });
    let ran = 0;
    const agent: Agent = { id: "a", tools: { push: tool("once", () => ++ran, open) } };
    const { redactions } = await first.executor.run(agent, `use ${TOKEN}`, {
      runId: "r",
      signal: stop.signal,
    });
    expect(redactions).toBe((await first.store.head("r"))?.redactions);
    restore();
    const second = restarted(first, [push, "I will ask for the token"]);
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed", output: "I will ask for the token" } });
    expect(ran).toBe(0);
    expect(JSON.stringify(await second.store.history("r"))).toContain("repeat it if it is still needed");
    const head = await second.store.head("r");
    expect(resumed).toMatchObject({ result: { redactions: head?.redactions } });
  });

  test("in a tool's result do not prevent other calls of the step from being repeated", async () => {
    const calls: Line = {
      calls: [
        { tool: "look", input: {} },
        { tool: "put", input: {} },
      ],
    };
    const first = bench([calls, "end"]);
    const stop = new AbortController();
    const stopped = Promise.withResolvers<void>();
    let puts = 0;
    const agent: Agent = {
      id: "a",
      tools: {
        look: tool("read", () => `found ${TOKEN}`, open),
        put: tool(
          "idempotent",
          async () => {
            puts += 1;
            if (puts > 1) return "put";
            stop.abort(new ShutdownError());
            stopped.resolve();
            return new Promise(() => {});
          },
          open,
        ),
      },
    };
    const running = first.executor.run(agent, "go", { runId: "r", signal: stop.signal });
    await stopped.promise;
    await passTime(first.machine.clock, running);
    const second = restarted(first, [calls, "end"]);
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed" } });
    expect(puts).toBe(2);
  });

  test.each([
    ["the prompt", ["x"], `use ${TOKEN}`],
    ["the model's answer", [`it is ${TOKEN}`], "go"],
    ["the model's error", [() => Promise.reject(new Error(`401 for ${TOKEN}`))], "go"],
  ] as [string, Line[], string][])("in %s are removed and counted", async (_, script, input) => {
    const { executor, store } = bench(script);
    const result = await executor.run({ id: "a" }, input, { runId: "r" });
    const record = await store.load("r");
    expect(JSON.stringify(record)).not.toContain(TOKEN);
    expect(result.redactions).toBeGreaterThan(0);
    expect(result.redactions).toBe(record?.head.redactions);
  });

  test("are not cut in half by the excerpt that lists show", async () => {
    for (let before = 150; before <= 210; before += 5) {
      const { executor, store } = bench(["x"]);
      await executor.run({ id: "a" }, `${"word ".repeat(60).slice(0, before)} ${TOKEN} and more`, {
        runId: "r",
      });
      const { prompt } = (await store.load("r"))!.info;
      expect(prompt).not.toContain(TOKEN.slice(0, 6));
      expect(prompt.length).toBeGreaterThan(100);
    }
  });

  test("in thrown errors and field names are removed and counted", async () => {
    const line: Line = { calls: [{ tool: "act", input: { [TOKEN]: 1 } }] };
    const { executor, store } = bench([line, "end"]);
    const act = tool(
      "once",
      () => {
        throw new Error(`no access with ${TOKEN}`);
      },
      open,
    );
    const result = await executor.run({ id: "a", tools: { act } }, "go", {
      runId: "r",
      inputs: { [TOKEN]: TOKEN },
    });
    expect(result.status).toBe("completed");
    expect(JSON.stringify(await store.load("r"))).not.toContain(TOKEN);
    expect(result.redactions).toBeGreaterThanOrEqual(4);
  });
});
