// An agent with three phases: plan, write, review. Each has its own prompt and conversation and passes its output on; if the
// review fails, its fallback is used. Killed in the middle, it skips completed phases and continues within the interrupted
// one.
//
//   node examples/phased-agent.ts ./my-cell
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { createExecutor, openCellRunStore, recoverInterrupted } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";

const cell = process.argv[2] ?? "phased-cell";
mkdirSync(cell, { recursive: true });

const agent = {
  id: "writer",
  tools: {
    write_file: {
      description: "Writes a chapter; writing it again changes nothing.",
      inputSchema: jsonSchema<{ name: string; text: string }>({
        type: "object",
        properties: { name: { type: "string" }, text: { type: "string" } },
        required: ["name", "text"],
      }),
      effect: "idempotent" as const,
      execute: ({ name, text }: { name: string; text: string }) => {
        writeFileSync(join(cell, `${name}.txt`), text);
        return `${name} is written`;
      },
    },
  },
  phases: [
    { name: "plan", prompt: "Plan two chapters." },
    { name: "write", prompt: "Write them." },
    { name: "review", prompt: "Review what was written.", fallback: "Not reviewed." },
  ],
};

await using store = openCellRunStore(cell);
const executor = createExecutor({
  // Replace it with a real model, such as anthropic("claude-sonnet-4-5") from @ai-sdk/anthropic.
  model: createScriptedModel([
    { tool: "write_file", input: { name: "chapter", text: "It was a dark night." } },
    "Done.",
  ]),
  store,
  checkpoint: { required: true },
});

await recoverInterrupted(executor, { agentFor: () => agent });
if ((await store.list({ limit: 1 })).length === 0) await executor.run(agent, "A short novel, please.");
const [head] = await store.list({ limit: 1 });
process.stdout.write(`${head!.runId} ${head!.status} after ${head!.phase} phases\n`);
process.exitCode = head!.status === "completed" ? 0 : 1;
