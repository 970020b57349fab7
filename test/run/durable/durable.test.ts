// Durable agents: replay, the ledger, approvals, waiting.
import { isStepCount, ToolLoopAgent, tool } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { currentEffect } from "../../../src/run/engine/scope.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { call, script } from "./models.ts";

const memory = () => ({ log: createRunLog(createMemoryJournal()) });

function mailer(log: string[] = []) {
  const model = script([[call("find", { q: "a" })], [call("send", { to: "bob" })], "sent"]);
  const tools = {
    find: tool({
      inputSchema: z.object({ q: z.string() }),
      execute: ({ q }) => {
        log.push(`find ${q}`);
        return [q];
      },
    }),
    send: tool({
      inputSchema: z.object({ to: z.string() }),
      execute: ({ to }) => {
        log.push(`send ${to} ${currentEffect()?.id.replace(/^[^.]+/, "run")}`);
        return { ok: true };
      },
    }),
  };
  return {
    model,
    tools,
    log,
    agent: new ToolLoopAgent({ id: "mailer", model, tools, stopWhen: isStepCount(9) }),
  };
}

test("a durable agent answers like the plain one, and a repeated call with its id does nothing twice", async () => {
  const { agent, log, model } = mailer();
  const run = durable(agent, { store: memory(), effects: { find: "read" }, recover: false });
  const result = await run.generate({ prompt: "go", runId: "r1" });
  expect(result.text).toBe("sent");
  expect(result.runId).toBe("r1");
  expect(log).toEqual(["find a", "send bob run.2.0"]);
  const again = await run.generate({ prompt: "go", runId: "r1" });
  expect(again.text).toBe("sent");
  expect(again.steps.length).toBe(3);
  expect(log.length).toBe(2);
  expect(model.asked.length).toBe(3);
});

test("an agent of another copy of the SDK becomes durable, and anything else is refused", async () => {
  const { agent, log } = mailer();
  // What a linked package sees: the same class, loaded from another directory.
  const foreign = Object.assign(Object.create(null), agent, { version: "agent-v1" }) as typeof agent;
  expect(foreign).not.toBeInstanceOf(ToolLoopAgent);
  const run = durable(foreign, { store: memory(), effects: { find: "read" }, recover: false });
  expect((await run.generate({ prompt: "go" })).text).toBe("sent");
  expect(log).toEqual(["find a", "send bob run.2.0"]);
  const { settings: _, ...plain } = foreign as unknown as { settings: unknown };
  expect(() => durable(plain as typeof agent, { store: memory() })).toThrow("takes a ToolLoopAgent of ai 7");
});

test("stream", async () => {
  const { agent, log } = mailer();
  const run = durable(agent, { store: memory(), effects: { find: "read" }, recover: false });
  const result = await run.stream({ prompt: "go", runId: "r1" });
  expect(await result.text).toBe("sent");
  expect((await result.outcome).status).toBe("completed");
  const followed = await run.follow("r1");
  expect(await followed.text).toBe("sent");
  expect(log.length).toBe(2);
});

test("approval", async () => {
  const { agent: _, model, tools, log } = mailer();
  const agent = new ToolLoopAgent({
    id: "m",
    model,
    tools,
    stopWhen: isStepCount(9),
    toolApproval: { send: "user-approval" },
  });
  const store = memory();
  const run = durable(agent, { store, recover: false });
  const result = await run.generate({ prompt: "go", runId: "r1" });
  expect((await store.log.journal.readHead("r1"))!.status).toBe("waiting");
  const request = result.content.find((part) => part.type === "tool-approval-request")!;
  expect(log).toEqual(["find a"]);
  expect(await run.approve("r1", request.approvalId)).toBe("answered");
  const done = await run.generate({ runId: "r1" });
  expect(done.text).toBe("sent");
  expect(log).toEqual(["find a", "send bob run.2.0"]);
  expect((await store.log.journal.readHead("r1"))!.status).toBe("completed");
});

test("simultaneous calls with one id: one runs, the same call gets RUN_BUSY, a different input is refused", async () => {
  const store = memory();
  const { agent, log } = mailer();
  const durableAgent = durable(agent, { store, recover: false });
  const ended = await Promise.allSettled(
    ["go", "go", "stop"].map((prompt) => durableAgent.generate({ prompt, runId: "r" })),
  );
  expect(ended.map((each) => (each.status === "fulfilled" ? each.value.text : each.reason.code))).toEqual([
    "sent",
    "RUN_BUSY",
    "RUN_ID_TAKEN",
  ]);
  expect(log).toEqual(["find a", "send bob run.2.0"]);
  expect((await durableAgent.generate({ prompt: "go", runId: "r" })).text).toBe("sent");
});

test("the same call again is recognized although a secret was removed from its stored input", async () => {
  const { agent } = mailer();
  const durableAgent = durable(agent, { store: memory(), recover: false });
  const prompt = `use ${["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_")}`;
  await durableAgent.generate({ prompt, runId: "r" });
  expect((await durableAgent.generate({ prompt, runId: "r" })).text).toBe("sent");
});

test.each<[string, object, string]>([
  ["a class that does not exist", { effects: { send: "twice" } }, 'tool send has the effect "twice"'],
  [
    "reconcile without a function",
    { effects: { send: "reconcile" } },
    'tool send has the effect "reconcile"',
  ],
  ["no rule", { effects: { send: {} } }, "tool send has the effect [object Object]"],
  ["an unknown policy", { onChange: "ignore" }, 'onChange is "ignore"'],
  ["no time to answer", { approvalMs: 0 }, "approvalMs is 0"],
  ["a negative grace period", { graceMs: -1 }, "graceMs is -1"],
  ["no store", { store: undefined }, "store is not a run store"],
])("an agent with %s is refused when it is created", (_, options, message) => {
  const { agent } = mailer();
  const all = { store: memory(), recover: false, ...options } as never;
  expect(() => durable(agent, all)).toThrow(message);
});

test.each([[{ caller: "" }], [{ queue: 7 }], [{ priority: 0.5 }], [{ runId: 7 }], [{ runId: "a/b" }]])(
  "a call with %j is refused",
  async (parameters) => {
    const agent = durable(mailer().agent, { store: memory(), recover: false });
    await expect(agent.generate({ prompt: "go", ...parameters } as never)).rejects.toMatchObject({
      code: expect.stringMatching(/USAGE|RUN_ID_INVALID/),
    });
  },
);
