// A research agent with subagents: an editor asks a researcher about two topics, each a run of its own, then mails the report, which
// must happen once. Kill it anywhere and start it again with the same directory: it continues where it stopped, and a researcher that
// has answered is not asked again.
//
//   node examples/research-agent.ts ./my-cell
//
// Killed while sending the mail, it stops and waits for you: check outbox.jsonl, then report what happened with
// `lazarus runs resolve <effect> --done | --retry --store my-cell/state/runs.db`.
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ToolLoopAgent, tool } from "ai";
import { currentEffect, durable, openCellRunStore } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";
import { z } from "zod";

const cell = process.argv[2] ?? "research-cell";
mkdirSync(cell, { recursive: true });
await using store = openCellRunStore(cell);

const researcher = durable(
  new ToolLoopAgent({
    id: "researcher",
    instructions: "Search, then answer in one sentence.",
    // Replace the models with real ones, such as anthropic("claude-sonnet-4-5") from @ai-sdk/anthropic.
    model: createScriptedModel([{ tool: "search", input: { query: "survey" } }, "It is a good idea."]),
    tools: {
      search: tool({
        description: "Searches the web.",
        inputSchema: z.object({ query: z.string() }),
        execute: ({ query }) => `three results about ${query}`,
      }),
    },
  }),
  { store, effects: { search: "read" }, recover: false },
);

const editor = durable(
  new ToolLoopAgent({
    id: "editor",
    instructions: "Have two topics researched, then mail a short report.",
    model: createScriptedModel([
      { tool: "research", input: { topic: "durable agents" } },
      { tool: "research", input: { topic: "effect ledgers" } },
      { tool: "mail_report", input: { report: "Both are a good idea." } },
      "The report is out.",
    ]),
    tools: {
      research: tool({
        description: "Asks a researcher.",
        inputSchema: z.object({ topic: z.string() }),
        execute: async ({ topic }) => (await researcher.generate({ prompt: topic })).text,
      }),
      mail_report: tool({
        description: "Mails the report to the team.",
        inputSchema: z.object({ report: z.string() }),
        execute: ({ report }) => {
          appendFileSync(
            join(cell, "outbox.jsonl"),
            `${JSON.stringify({ id: currentEffect()?.id, report })}\n`,
          );
          return "sent";
        },
      }),
    },
  }),
  // A nested tool is called again after a kill, and finds the runs that it has begun.
  { store, effects: { research: "nested" }, recover: false },
);

// The id makes it one run: after a kill, the same call continues it.
try {
  const { text } = await editor.generate({ runId: "report", prompt: "What is known about durable agents?" });
  process.stdout.write(`${text}\n`);
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 4;
}
