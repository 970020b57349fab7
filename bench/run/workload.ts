// The workload: steps of 2 KB of incompressible text, written as the engine does and as a graph.
import { randomBytes } from "node:crypto";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { RunInfo, RunStore } from "../../src/run/index.ts";
import { entryOf } from "../../src/run/log/entry.ts";
import { beginRun, writeRun } from "../../src/run/log/run-log.ts";

/** 2,048 characters. */
export function twoKilobytes(): string {
  return randomBytes(1536).toString("base64");
}

export function infoOf(runId: string): RunInfo {
  return {
    ...{ runId, agentId: "bench", agentName: "bench", callerId: null, channelId: null, guildId: null },
    ...{ parentRunId: null, prompt: "go", modelTier: null, inputs: null, startedAtMs: 0, maxIterations: 1 },
  };
}

/** Writes `steps` steps; returns the time of each and the size of the transcript. */
export async function saveSteps(
  store: RunStore,
  runId: string,
  steps: number,
): Promise<{ ms: number[]; transcriptBytes: number }> {
  const write = await beginSteps(store, runId);
  const ms: number[] = [];
  let transcriptBytes = 0;
  for (let step = 1; step <= steps; step += 1) {
    const text = twoKilobytes();
    transcriptBytes += JSON.stringify({ role: "assistant", content: text }).length;
    const started = performance.now();
    await write(step, text);
    ms.push(performance.now() - started);
  }
  return { ms, transcriptBytes };
}

/** Begins a run; the returned function writes one answer as the engine does, and is durable when it resolves. */
export async function beginSteps(
  { log }: RunStore,
  runId: string,
): Promise<(step: number, text: string) => Promise<void>> {
  const input = { mode: "generate", call: { messages: [] }, phase: 0 };
  const begun = entryOf({ step: 0, kind: "input", call: 0 }, { input });
  const { lease } = await beginRun(log, { id: runId, agentId: "bench", info: infoOf(runId) }, [begun]);
  let seq = 0;
  return async (step, text) => {
    const result = { content: [{ type: "text", text }], finishReason: { unified: "stop" }, warnings: [] };
    const entry = entryOf({ step, kind: "response", call: 0 }, { provider: "p", modelId: "m", result });
    seq += 1;
    await writeRun(log, lease, { seq, sync: "full", entries: [entry], head: { step } });
  };
}

/** Runs a graph of `steps` steps, with or without a saver, and returns the total time. */
export async function runGraph(
  saver: BaseCheckpointSaver | undefined,
  thread: string,
  steps: number,
): Promise<number> {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("talk", () => ({ messages: [new AIMessage(twoKilobytes())] }))
    .addEdge(START, "talk")
    .addConditionalEdges("talk", ({ messages }) => (messages.length > steps ? END : "talk"))
    .compile(saver === undefined ? {} : { checkpointer: saver });
  const started = performance.now();
  await graph.invoke(
    { messages: [new HumanMessage("go")] },
    // Saves are awaited at each step, so that queueing does not hide their cost.
    { configurable: { thread_id: thread }, recursionLimit: steps * 2 + 10, durability: "sync" },
  );
  return performance.now() - started;
}
