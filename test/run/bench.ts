// What the tests of the kernel share: a scripted model, a store in memory, and a second process on the same store.
import { jsonSchema } from "ai";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  createCheckpointer,
  createExecutor,
  createMemoryRunStore,
  type DurableTool,
  type RunPorts,
  type RunStore,
} from "../../src/run/index.ts";
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

/** An executor on a store in memory, both on a simulated machine. */
export function bench(script: readonly Line[], options: { ports?: RunPorts; throttleMs?: number } = {}) {
  const machine = createSimulatedMachine({ disk: systemDisk });
  const store: RunStore = createMemoryRunStore({ machine });
  const model = createScriptedModel(script);
  const checkpointer = createCheckpointer(store, { machine, throttleMs: options.throttleMs ?? 0 });
  const executor = createExecutor({
    model,
    machine,
    ports: { checkpointer, ...options.ports },
    defaults: { maxRetries: 0 },
  });
  return { machine, store, model, executor };
}

/** A second process on the same store. */
export function reborn(first: ReturnType<typeof bench>, script: readonly Line[]) {
  const model = createScriptedModel(script);
  const { machine, store } = first;
  const executor = createExecutor({
    model,
    machine,
    ports: { checkpointer: createCheckpointer(store, { machine }) },
    defaults: { maxRetries: 0 },
  });
  return { ...first, model, executor };
}

/** A line in which the model calls one tool. */
export const call = (name: string, n = 1, id?: string): Line => ({
  calls: [{ tool: name, input: { n }, ...(id ? { id } : {}) }],
});
