// The workload: steps of 2 KB of incompressible text, saved by the kernel's checkpointer and as a graph.
import { randomBytes } from "node:crypto";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { createCheckpointer, type RunInfo, type RunStore } from "../../src/run/index.ts";
import { createState } from "../../src/run/kernel/state.ts";

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

/** Saves `steps` steps; returns the time of each and the size of the transcript. */
export async function saveSteps(
  store: RunStore,
  runId: string,
  steps: number,
): Promise<{ ms: number[]; transcriptBytes: number }> {
  const state = createState(infoOf(runId), []);
  const checkpointer = (await createCheckpointer(store).begin(state.info, state))!;
  const ms: number[] = [];
  let transcriptBytes = 0;
  for (let step = 1; step <= steps; step += 1) {
    const message = { role: "assistant" as const, content: twoKilobytes() };
    transcriptBytes += JSON.stringify(message).length;
    state.step = step;
    state.transcript.push({ step, phase: 0, message });
    const started = performance.now();
    await checkpointer.save(state, "now");
    ms.push(performance.now() - started);
  }
  await checkpointer.close(state, { status: "completed", output: null, error: null });
  return { ms, transcriptBytes };
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
