// A run followed as a stream of UI messages: one message from its beginning, across approvals, processes and deaths.
import {
  createAgentUIStream,
  isStepCount,
  readUIMessageStream,
  ToolLoopAgent,
  tool,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { createMemoryJournal } from "../../../src/run/journal/memory.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { call, script } from "./models.ts";
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

test("a follower goes on after an answer that another process continues", async () => {
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
