// What a durable step adds to a step of an agent, on SQLite, and how long a replay takes.
import { isStepCount, jsonSchema, type LanguageModel, ToolLoopAgent, tool } from "ai";
import { durable, openSqliteRunStore } from "../../src/run/index.ts";
import { median, type Score } from "../harness.ts";
import { openStockSaver } from "./stock-saver.ts";
import { runGraph, twoKilobytes } from "./workload.ts";

const STEPS = 400;
const ROUNDS = 3;
const REPLAY_MS = 1000;

interface Figures {
  /** Added to a step by each class of tool. */
  readonly readMs: number;
  readonly effectMs: number;
  /** A whole step of a graph with their saver. */
  readonly stockMs: number;
  readonly stockSyncedMs: number;
  readonly replayMs: number;
}

export async function measureSteps(fresh: (name: string) => string): Promise<Score[]> {
  // A shorter conversation first, to warm up the JIT compiler.
  await measureRound(fresh, STEPS / 8);
  const rounds: Figures[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await measureRound(fresh, STEPS));
  const pair = (ours: (figures: Figures) => number, peer: (figures: Figures) => number) => ({
    oursMs: median(rounds.map(ours)),
    peerMs: median(rounds.map(peer)),
    ratio: median(rounds.map((each) => ours(each) / peer(each))),
    rounds: ROUNDS,
  });
  return [
    {
      ...{ name: "a durable step with a read, surviving a kill", ours: "what it adds", goal: 0.15 },
      ...{
        peer: "whole step with SqliteSaver",
        ...pair(
          ({ readMs }) => readMs,
          ({ stockMs }) => stockMs,
        ),
      },
    },
    {
      ...{ name: "a durable step with an effect, synced twice", ours: "what it adds", goal: undefined },
      peer: "whole step with SqliteSaver, synchronous=FULL",
      ...pair(
        ({ effectMs }) => effectMs,
        ({ stockSyncedMs }) => stockSyncedMs,
      ),
    },
    {
      ...{ name: "replay of 400 steps", ours: "agent.generate({ runId })", peer: "goal", goal: 1 },
      ...pair(
        ({ replayMs }) => replayMs,
        () => REPLAY_MS,
      ),
    },
  ];
}

async function measureRound(fresh: (name: string) => string, steps: number): Promise<Figures> {
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const started = performance.now();
    await work();
    return performance.now() - started;
  };
  const plainMs = await timed(() => createTestAgent(steps).generate({ prompt: "go" }));
  const durableMs = async (effect: "read" | "idempotent") => {
    await using store = openSqliteRunStore(fresh("steps"));
    const agent = durable(createTestAgent(steps), { store, effects: { note: effect }, recover: false });
    const wholeMs = await timed(() => agent.generate({ runId: "r", prompt: "go" }));
    const replayMs = await timed(() => agent.generate({ runId: "r" }));
    return { addedMs: (wholeMs - plainMs) / steps, replayMs };
  };
  const { addedMs: readMs, replayMs } = await durableMs("read");
  const { addedMs: effectMs } = await durableMs("idempotent");
  const stockMs = (await runGraph(await openStockSaver(fresh("stock")), "t", steps)) / steps;
  const stockSyncedMs = (await runGraph(await openStockSaver(fresh("stock"), true), "t", steps)) / steps;
  return { readMs, effectMs, stockMs, stockSyncedMs, replayMs };
}

/** An agent that writes 2 KB and calls a tool at every step. */
function createTestAgent(steps: number) {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const model = {
    ...{ specificationVersion: "v4", provider: "bench", modelId: "bench", supportedUrls: {} },
    async doGenerate({ prompt }: { prompt: readonly { role: string }[] }) {
      const step = prompt.filter(({ role }) => role === "assistant").length + 1;
      const call = { type: "tool-call", toolCallId: `c${step}`, toolName: "note", input: `{"n":${step}}` };
      const isLast = step >= steps;
      const text = { type: "text", text: twoKilobytes() };
      const finishReason = { unified: isLast ? "stop" : "tool-calls", raw: undefined };
      return { content: isLast ? [text] : [text, call], finishReason, usage, warnings: [] };
    },
    doStream: () => Promise.reject(new Error("not used")),
  } as unknown as LanguageModel;
  const note = tool({
    inputSchema: jsonSchema<{ n: number }>({ type: "object" }),
    execute: ({ n }) => ({ ok: n }),
  });
  return new ToolLoopAgent({ id: "writer", model, tools: { note }, stopWhen: isStepCount(steps + 1) });
}
