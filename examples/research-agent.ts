// A research agent: it searches twice (reads), then mails its report, which must happen once. Kill it anywhere and restart
// it with the same directory; it continues at the step where it stopped.
//
//   node examples/research-agent.ts ./my-cell
//
// Killed while sending the mail, it stops and waits for you: check outbox.jsonl, then report what happened with
// `lazarus runs resolve <effect> --done | --retry --store my-cell/state/runs.db`.
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { createExecutor, openCellRunStore, recoverInterrupted } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";

const cell = process.argv[2] ?? "research-cell";
mkdirSync(cell, { recursive: true });

const text = (name: string) =>
  jsonSchema<Record<string, string>>({
    type: "object",
    properties: { [name]: { type: "string" } },
    required: [name],
  });

const agent = {
  id: "research",
  instructions: "Search twice, then mail a short report.",
  tools: {
    search: {
      description: "Searches the web.",
      inputSchema: text("query"),
      effect: "read" as const,
      execute: ({ query }: Record<string, string>) => `three results about ${query}`,
    },
    mail_report: {
      description: "Mails the report to the team.",
      inputSchema: text("report"),
      effect: "once" as const,
      execute: ({ report }: Record<string, string>, { effectId }: { effectId: string }) => {
        appendFileSync(join(cell, "outbox.jsonl"), `${JSON.stringify({ id: effectId, report })}\n`);
        return "sent";
      },
    },
  },
};

await using store = openCellRunStore(cell);
const executor = createExecutor({
  // Replace it with a real model, such as anthropic("claude-sonnet-4-5") from @ai-sdk/anthropic.
  model: createScriptedModel([
    { tool: "search", input: { query: "durable agents" } },
    { tool: "search", input: { query: "effect ledgers" } },
    { tool: "mail_report", input: { report: "Both are a good idea." } },
    "The report is out.",
  ]),
  store,
  checkpoint: { required: true },
});

const recovered = await recoverInterrupted(executor, { agentFor: () => agent });
const [before] = await store.list({ limit: 1 });
if (before === undefined) await executor.run(agent, "What is known about durable agents?");
for (const each of recovered) process.stderr.write(`resumed run ${each.runId}\n`);
const [head] = await store.list({ limit: 1 });
process.stdout.write(`${head!.runId} ${head!.status}\n`);
process.exitCode = head!.status === "completed" ? 0 : 4;
