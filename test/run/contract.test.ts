// Parts of the contract that no other test covers: run info, model tiers, limits of phases, the watchdog's controls, and
// storage size.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { createCritic } from "../../src/run/critic/index.ts";
import { type Agent, createExecutor, openSqliteRunStore, recoverInterrupted } from "../../src/run/index.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { bench, call, never, passTime, tool } from "./bench.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

describe("a run", () => {
  test("records caller, agent and prompt in its info", async () => {
    const { executor, store, machine } = bench([call("look"), "end"]);
    let seen: unknown;
    const look = tool("read", (_, { info }) => {
      seen = info;
    });
    const startedAtMs = Math.floor(machine.clock.nowMs());
    await executor.run({ id: "a", name: "Anna", maxIterations: 7, tools: { look } }, "the task", {
      ...{ runId: "r", callerId: "me", channelId: "room", guildId: "house", parentRunId: "above" },
      ...{ modelTier: "fast", inputs: { file: "x" } },
    });
    const info = {
      ...{ runId: "r", agentId: "a", agentName: "Anna", callerId: "me", channelId: "room", guildId: "house" },
      ...{ parentRunId: "above", prompt: "the task", modelTier: "fast", inputs: { file: "x" }, startedAtMs },
      maxIterations: 7,
    };
    expect(seen).toEqual(info);
    expect((await store.load("r"))?.info).toEqual(info);
    expect((await store.head("r"))?.parentRunId).toBe("above");
  });

  test("without an id gets a unique one, even among many in one second", async () => {
    const machine = createSimulatedMachine({ disk: systemDisk });
    const executor = createExecutor({ model: createScriptedModel(["x"]), machine });
    const results = await Promise.all(Array.from({ length: 2000 }, () => executor.run({ id: "a" }, "go")));
    const ids = new Set(results.map(({ runId }) => runId));
    expect(ids.size).toBe(2000);
    for (const id of ids) expect(id).toMatch(/^\d{8}-\d{6}-[0-9a-z]{12}$/);
  });

  test("is not durable and does not warn when its factory returns nothing", async () => {
    const checkpointer = { begin: async () => undefined };
    const executor = createExecutor({ model: createScriptedModel(["x"]), ports: { checkpointer } });
    expect(await executor.run({ id: "a" }, "go")).toMatchObject({
      status: "completed",
      durable: false,
      warnings: [],
    });
  });

  test("uses the model of its tier, or the default model", async () => {
    const models = { fast: createScriptedModel(["fast"]), deep: createScriptedModel(["deep"]) };
    const executor = createExecutor({ model: createScriptedModel(["default"]), models });
    const outputOf = async (agent: Agent, modelTier?: string) =>
      (await executor.run(agent, "go", modelTier === undefined ? {} : { modelTier })).output;
    expect(await outputOf({ id: "a" })).toBe("default");
    expect(await outputOf({ id: "a", modelTier: "fast" })).toBe("fast");
    expect(await outputOf({ id: "a", modelTier: "fast" }, "deep")).toBe("deep");
    expect(await outputOf({ id: "a", modelTier: "constructor" })).toBe("default");
    expect(await outputOf({ id: "a", phases: [{ name: "p", prompt: "p", modelTier: "deep" }] })).toBe("deep");
    const none = await createExecutor({ models }).run({ id: "a" }, "go");
    expect(none.error).toMatchObject({ code: "RUN_AGENT_INVALID", hint: "this executor has: fast, deep" });
  });

  test("takes at most 1.5 times the bytes of its transcript", async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-bytes-"));
    let transcriptBytes = 0;
    {
      await using store = openSqliteRunStore(join(directory, "runs.db"), { keepSecrets: true });
      const script = Array.from({ length: 400 }, (_, n): Line => call("look", n));
      const look = tool("read", ({ n }) => String(n).padStart(2048, "x"));
      const executor = createExecutor({ model: createScriptedModel([...script, "end"]), store });
      await executor.run({ id: "a", maxIterations: 500, tools: { look } }, "go", { runId: "r" });
      for (const { message } of await store.history("r")) transcriptBytes += JSON.stringify(message).length;
    }
    await using store = openSqliteRunStore(join(directory, "runs.db"));
    expect(await store.sizeBytes()).toBeLessThanOrEqual(1.5 * transcriptBytes);
    rmSync(directory, { recursive: true });
  });
});

describe("phases", () => {
  test("have their own tools and limits", async () => {
    const ran: string[] = [];
    const { executor, store } = bench([call("look"), call("look"), call("look"), "end"]);
    const look = (name: string) => tool("read", () => void ran.push(name));
    const agent: Agent = {
      id: "a",
      tools: { look: look("agent's") },
      phases: [
        { name: "own tools", prompt: "p", tools: { look: look("own") } },
        { name: "own limit", prompt: "p", maxIterations: 2, fallback: "cut short" },
        { name: "no tools", prompt: "p", tools: {} },
      ],
    };
    const result = await executor.run(agent, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "end" });
    expect(ran).toEqual(["own", "own", "own", "agent's", "agent's"]);
    expect((await store.load("r"))?.phases).toMatchObject([
      { output: "end", fellBack: false },
      { output: "cut short", fellBack: true },
      { output: "end", fellBack: false },
    ]);
  });
});

describe("a watchdog", () => {
  function watched(
    script: readonly Line[],
    onSoftTimeout: Parameters<typeof createCritic>[0]["onSoftTimeout"],
  ) {
    const first = bench(script);
    const critic = createCritic({
      ...{ softTimeoutMs: 1000, hardMultiplier: 2, clock: first.machine.clock },
      ...(onSoftTimeout === undefined ? {} : { onSoftTimeout }),
    });
    const executor = createExecutor({
      model: first.model,
      machine: first.machine,
      store: first.store,
      ports: { watchdog: critic },
      defaults: { maxRetries: 0 },
    });
    return { ...first, executor };
  }

  test("kills an idle run, and it is not resumed", async () => {
    const answer = never<string>();
    const { executor, store, machine } = watched([answer.wait], undefined);
    const running = executor.run({ id: "a" }, "go", { runId: "r" });
    await answer.awaited;
    expect(await passTime(machine.clock, running)).toMatchObject({
      status: "killed",
      error: { code: "RUN_KILLED" },
    });
    expect((await store.head("r"))?.status).toBe("killed");
    expect(await recoverInterrupted(executor, { agentFor: () => ({ id: "a" }) })).toEqual([]);
  });

  test("can nudge the model and raise its step limit", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const slow = () => {
      asked.resolve();
      return answer.promise;
    };
    const { executor, store, machine } = watched([slow, "a second answer"], () => {
      // In a later turn, after the answer was applied.
      setImmediate(() => answer.resolve("a first answer"));
      return { nudge: "are you there?", raiseStepsBy: 1 };
    });
    const running = executor.run({ id: "a", maxIterations: 1 }, "go", { runId: "r" });
    await asked.promise;
    await machine.clock.advance(1001);
    expect(await running).toMatchObject({ status: "completed", output: "a second answer", steps: 2 });
    const roles = (await store.history("r")).map(({ message }) => message.role);
    expect(roles).toEqual(["user", "assistant", "user", "assistant"]);
    expect(JSON.stringify(await store.history("r"))).toContain("are you there?");
  });
});
