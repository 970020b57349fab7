// Fixtures of the kernel tests: a scripted model, a store in memory, and a second process on the same store.
import { jsonSchema } from "ai";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  createExecutor,
  createMemoryRunStore,
  type DurableTool,
  type EntryState,
  type JournalVerdict,
  type JournalWrite,
  type RunPorts,
  type RunStore,
} from "../../src/run/index.ts";
import type { SimulatedClock } from "../../src/testing/simulated-clock.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

const anything = jsonSchema<{ n: number }>({
  type: "object",
  properties: { n: { type: "number" } },
  required: ["n"],
  additionalProperties: false,
});

/** A tool that takes a number. */
export function tool(
  effect: DurableTool["effect"],
  execute: DurableTool["execute"],
  more: Partial<DurableTool> = {},
): DurableTool {
  return { description: "d", inputSchema: anything, ...(effect ? { effect } : {}), execute, ...more };
}

/** A tool whose call stays pending until the test answers it. */
export function openTool(effect: DurableTool["effect"]) {
  const called = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<unknown>();
  const execute = () => {
    called.resolve();
    return answer.promise;
  };
  return { tool: tool(effect, execute), called: called.promise, answer: answer.resolve };
}

/** A promise that never resolves, and when it is first awaited. */
export function never<T>() {
  const awaited = Promise.withResolvers<void>();
  const wait = () => {
    awaited.resolve();
    return new Promise<T>(() => {});
  };
  return { wait, awaited: awaited.promise };
}

/** Advances simulated time until `work` settles; call it when only time is being waited for. */
export async function passTime<T>(clock: SimulatedClock, work: Promise<T>): Promise<T> {
  let over = false;
  const ended = work.finally(() => {
    over = true;
  });
  ended.catch(() => {});
  while (!over) await clock.advance(1000);
  return ended;
}

/** An executor on a store in memory, both on a simulated machine. */
export function bench(script: readonly Line[], options: { ports?: RunPorts; throttleMs?: number } = {}) {
  const machine = createSimulatedMachine({ disk: systemDisk });
  const store: RunStore = createMemoryRunStore({ machine });
  const model = createScriptedModel(script);
  const executor = createExecutor({
    model,
    machine,
    store,
    checkpoint: { throttleMs: options.throttleMs ?? 0 },
    ports: options.ports ?? {},
    defaults: { maxRetries: 0 },
  });
  return { machine, store, model, executor };
}

/** Puts `hook` between the runs of a store and its journal; returns a function that removes it. */
export function onWrite(
  store: RunStore,
  hook: (write: JournalWrite, proceed: () => Promise<JournalVerdict>) => Promise<JournalVerdict>,
): () => void {
  const { journal } = store.log;
  const { write } = journal;
  journal.write = (each) => hook(each, () => write.call(journal, each));
  return () => {
    journal.write = write;
  };
}

/** Whether a write records an effect in this state. */
export function records(write: JournalWrite, state: EntryState): boolean {
  return write.entries.some((entry) => entry.kind === "effect" && entry.state === state);
}

/** A second process on the same store. */
export function restarted(first: ReturnType<typeof bench>, script: readonly Line[]) {
  const model = createScriptedModel(script);
  const { machine, store } = first;
  const executor = createExecutor({
    model,
    machine,
    store,
    defaults: { maxRetries: 0 },
  });
  return { ...first, model, executor };
}

/** A line in which the model calls one tool. */
export const call = (name: string, n = 1, id?: string): Line => ({
  calls: [{ tool: name, input: { n }, ...(id ? { id } : {}) }],
});
