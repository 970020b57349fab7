// A run followed as a stream of UI messages: one message from its beginning, across approvals, processes and deaths.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createAgentUIStream,
  isStepCount,
  readUIMessageStream,
  ToolLoopAgent,
  tool,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { systemMachine } from "../../../src/platform/machine.ts";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import type { Journal } from "../../../src/run/journal/journal.ts";
import { createMemoryJournal, openSqliteJournal } from "../../../src/run/journal/sqlite.ts";
import { RUNS_DATABASE } from "../../../src/run/journal/sqlite-migrations.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { createSimulatedClock } from "../../../src/testing/simulated-clock.ts";
import { call, script, USAGE } from "./models.ts";
import { processesOf } from "./processes.ts";

const QUESTION: UIMessage = { id: "q", role: "user", parts: [{ type: "text", text: "pay bob" }] };

function payer(journal: ReturnType<typeof createMemoryJournal>, pid: number) {
  const paid: string[] = [];
  const tools = {
    pay: tool({
      inputSchema: z.object({ to: z.string() }),
      execute: ({ to }) => {
        paid.push(to);
        return { ok: true };
      },
    }),
  };
  const model = script([
    [{ type: "text", text: "I will pay bob." }, call("pay", { to: "bob" })],
    "Bob is paid.",
  ]);
  const plain = new ToolLoopAgent({
    ...{ id: "payer", model, tools, stopWhen: isStepCount(9) },
    toolApproval: { pay: "user-approval" },
  });
  const store = { log: createRunLog({ ...journal }, { machine: processesOf(pid) }) };
  return { agent: durable(plain, { store, recover: false }), plain, paid };
}

async function last(chunks: ReadableStream<UIMessageChunk>, message?: UIMessage): Promise<UIMessage> {
  const all = await Array.fromAsync(
    readUIMessageStream({ stream: chunks, ...(message === undefined ? {} : { message }) }),
  );
  return all.at(-1)!;
}

function answered(message: UIMessage, approved = true): UIMessage {
  const parts = message.parts.map((part) =>
    "approval" in part && part.approval !== undefined
      ? { ...part, state: "approval-responded", approval: { id: part.approval.id, approved } }
      : part,
  );
  return { ...message, parts } as UIMessage;
}

async function ask(agent: Parameters<typeof createAgentUIStream>[0]["agent"], uiMessages: UIMessage[]) {
  const stream = await createAgentUIStream({ agent, uiMessages, generateMessageId: () => "r" });
  const message = uiMessages.at(-1)!;
  return last(
    stream as ReadableStream<UIMessageChunk>,
    message.role === "assistant" ? structuredClone(message) : undefined,
  );
}

test("a follower gets the whole run as one message, equal to what the client of the plain agent has", async () => {
  const journal = createMemoryJournal();
  const { agent, plain, paid } = payer(journal, 1);
  const request = await ask(agent.withRun({ runId: "r" }) as never, [QUESTION]);
  const waiting = await payer(journal, 2).agent.follow("r");
  expect(await last(waiting.toUIMessageStream())).toEqual(request);
  const whole = await ask(agent.withRun({ runId: "r" }) as never, [QUESTION, answered(request)]);
  expect(paid).toEqual(["bob"]);
  const followed = await last((await payer(journal, 3).agent.follow("r")).toUIMessageStream());
  // The client itself marked the request as answered.
  const text = (message: UIMessage) => JSON.stringify(message.parts.filter(({ type }) => type === "text"));
  expect(text(followed)).toBe(text(whole));
  expect(followed.parts.map(({ type }) => type)).toEqual(whole.parts.map(({ type }) => type));
  const ofPlain = await ask(plain as never, [QUESTION, answered(await ask(plain as never, [QUESTION]))]);
  expect(text(followed)).toBe(text(ofPlain));
  expect(followed.id).toBe("r");
});

test("a follower continues after an approval when another process resumes the run", async () => {
  const journal = createMemoryJournal();
  const first = payer(journal, 1);
  const request = await ask(first.agent.withRun({ runId: "r" }) as never, [QUESTION]);
  const approval = request.parts.flatMap((part) => ("approval" in part ? [part.approval!.id] : []))[0]!;
  await first.agent.approve("r", approval);
  const follower = await payer(journal, 2).agent.follow("r");
  const chunks = Array.fromAsync(follower.toUIMessageStream());
  const third = payer(journal, 3);
  expect(await third.agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
  const types = (await chunks).map(({ type }) => type);
  expect(types.filter((type) => type === "start" || type === "finish")).toEqual(["start", "finish"]);
  expect(types.at(-1)).toBe("finish");
  expect(types).toContain("tool-output-available");
  expect([first.paid, third.paid]).toEqual([[], ["bob"]]);
});

test("a client that leaves ends its follower", async () => {
  const journal = createMemoryJournal();
  const owner = payer(journal, 1);
  const request = await ask(owner.agent.withRun({ runId: "r" }) as never, [QUESTION]);
  const approval = request.parts.flatMap((part) => ("approval" in part ? [part.approval!.id] : []))[0]!;
  await owner.agent.approve("r", approval);
  const [waits, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const watched = {
    ...journal,
    changed: (runId: string, seq: number, signal: AbortSignal) => {
      signal.addEventListener("abort", () => ended.resolve(), { once: true });
      waits.resolve();
      return journal.changed(runId, seq, signal);
    },
  };
  const follower = await payer(watched as never, 2).agent.follow("r");
  const reader = follower.toUIMessageStream().getReader();
  const read = (async () => {
    while (!(await reader.read()).done);
  })();
  await waits.promise;
  await reader.cancel();
  await Promise.all([ended.promise, read]);
});

/** An agent whose model writes one word each time it is told to. */
function writer(journal: Journal, pid: number, words: readonly string[]) {
  const next: (() => void)[] = [];
  const model = script(["unused"]);
  Object.assign(model, {
    doStream: async () => ({
      stream: new ReadableStream({
        async start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "1" });
          for (const delta of words) {
            await new Promise<void>((resolve) => next.push(resolve));
            controller.enqueue({ type: "text-delta", id: "1", delta });
          }
          controller.enqueue({ type: "text-end", id: "1" });
          controller.enqueue({
            type: "finish",
            finishReason: { unified: "stop", raw: "stop" },
            usage: USAGE,
          });
          controller.close();
        },
      }),
    }),
  });
  const clock = createSimulatedClock();
  const machine = { ...processesOf(pid), clock: { ...clock, sleep: systemMachine.clock.sleep } };
  const store = { log: createRunLog(journal, { machine }) };
  const agent = durable(new ToolLoopAgent({ id: "writer", model }), { store, recover: false });
  /** Lets the model write another word, later than the last batch. */
  const write = async () => {
    await vi.waitFor(() => expect(next.length).toBeGreaterThan(0));
    await clock.advance(1000);
    next.shift()!();
  };
  return { agent, write };
}

async function textOf(chunks: ReadableStream<UIMessageChunk>, seen: { text: string; error?: string }) {
  for await (const chunk of chunks) {
    if (chunk.type === "text-delta") seen.text += chunk.delta;
    if (chunk.type === "error") seen.error = chunk.errorText;
  }
}

describe.each(["memory", "sqlite"] as const)("a follower on a %s journal", (kind) => {
  const opened: Journal[] = [];
  let directory: string;
  let open: () => Journal;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lazarus-follow-"));
    const memory = createMemoryJournal();
    open = () => {
      const path = join(directory, "runs.db");
      const journal =
        kind === "memory" ? { ...memory } : openSqliteJournal(systemMachine, path, RUNS_DATABASE);
      opened.push(journal);
      return journal;
    };
  });
  afterEach(async () => {
    for (const journal of opened.splice(0)) await journal[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  test("sees text while it is being generated, and the whole answer once", async () => {
    const { agent, write } = writer(open(), 1, ["one ", "two ", "three ", "four"]);
    const answer = agent.stream({ prompt: "count", runId: "r" });
    await answer;
    const seen = { text: "" };
    const follower = await writer(open(), 2, []).agent.follow("r");
    const all = textOf(follower.toUIMessageStream(), seen);
    for (const _ of [1, 2, 3]) await write();
    await vi.waitFor(() => expect(seen.text).toMatch(/^one two /));
    await write();
    await all;
    expect(seen.text).toBe("one two three four");
    expect((await open().readParts("r", 1, 0)).parts).toEqual([]);
  });

  test("gets an error when the model is called again and responds differently", async () => {
    const first = writer(open(), 1, ["one ", "two ", "three "]);
    await first.agent.stream({ prompt: "count", runId: "r" });
    const seen: { text: string; error?: string } = { text: "" };
    const follower = await writer(open(), 2, []).agent.follow("r");
    const all = textOf(follower.toUIMessageStream({ onError: (error) => String(error) }), seen);
    for (const _ of [1, 2]) await first.write();
    await vi.waitFor(() => expect(seen.text).toMatch(/^one /));
    // Process 3 treats process 1 as dead.
    const third = writer(open(), 3, ["uno "]);
    const recovered = third.agent.recover();
    await third.write();
    await recovered;
    await all;
    expect(seen.error).toContain("started over");
    await first.write();
    const again = { text: "" };
    await textOf((await writer(open(), 4, []).agent.follow("r")).toUIMessageStream(), again);
    expect(again.text).toBe("uno ");
  });

  test("never sees a secret that the model writes", async () => {
    const words = ["password: ", "hunter2-hunter2-hunter2 ", "and more ", "text"];
    const { agent, write } = writer(open(), 1, words);
    await agent.stream({ prompt: "count", runId: "r" });
    const journal = open();
    const stored: string[] = [];
    for (const _ of words) {
      await write();
      stored.push(...(await journal.readParts("r", 1, 0)).parts);
    }
    await vi.waitFor(async () => expect((await journal.readHead("r"))?.status).toBe("completed"));
    expect(stored.join()).not.toContain("hunter2");
  });
});

describe("how a followed run has ended", () => {
  const worker = (journal: Journal, pid: number, execute: () => unknown) => {
    const log = createRunLog({ ...journal }, { machine: processesOf(pid) });
    const tools = { work: tool({ inputSchema: z.object({}), execute }) };
    const model = script([
      [call("work", {})],
      () => {
        throw new Error("the provider is gone");
      },
    ]);
    const plain = new ToolLoopAgent({ ...{ id: "worker", model, tools, maxRetries: 0 } });
    return { log, agent: durable(plain, { store: { log }, recover: false, graceMs: 1 }) };
  };
  const follower = (journal: Journal) => worker(journal, 2, () => "").agent;

  test("failed", async () => {
    const journal = createMemoryJournal();
    await expect(worker(journal, 1, () => "ok").agent.generate({ prompt: "go", runId: "r" })).rejects.toThrow(
      "the provider is gone",
    );
    const failed = {
      runId: "r",
      status: "failed",
      error: { code: "RUN_MODEL_FAILED", message: expect.stringContaining("the provider is gone") },
    };
    expect(await (await follower(journal).follow("r")).outcome).toMatchObject(failed);
    expect(await (await follower(journal).stream({ runId: "r" })).outcome).toMatchObject(failed);
  });

  test("cancelled, while it was followed", async () => {
    const journal = createMemoryJournal();
    const started = Promise.withResolvers<void>();
    const { agent } = worker(journal, 1, () => {
      started.resolve();
      return new Promise(() => {});
    });
    const run = agent.generate({ prompt: "go", runId: "r" }).catch(() => {});
    await started.promise;
    const { outcome } = await follower(journal).follow("r");
    await agent.cancel("r");
    await run;
    expect(await outcome).toMatchObject({ status: "cancelled", error: { code: "RUN_CANCELLED" } });
  });

  test("waiting for an approval", async () => {
    const journal = createMemoryJournal();
    await payer(journal, 1).agent.generate({ prompt: "pay bob", runId: "r" });
    const { outcome } = await payer(journal, 2).agent.follow("r");
    expect(await outcome).toEqual({ runId: "r", status: "waiting", error: null });
  });
});
