// The app of plain.ts with durable runs: two lines are added and one is changed.
//
//   node examples/adoption/durable.ts
import { appendFileSync } from "node:fs";
import { isStepCount, ToolLoopAgent, tool } from "ai";
import { durable, openSqliteRunStore } from "lazarus/run";
import { z } from "zod";
import { model } from "./model.ts";

const outbox = process.argv[2] ?? "outbox.txt";
const find = tool({
  inputSchema: z.object({ name: z.string() }),
  execute: ({ name }) => ({ name, mail: `${name.toLowerCase()}@example.org` }),
});
const send = tool({
  inputSchema: z.object({ to: z.string(), text: z.string() }),
  execute: ({ to, text }) => appendFileSync(outbox, `${to}: ${text}\n`),
});
const settings = { id: "mailer", model, tools: { find, send }, stopWhen: isStepCount(5) };
const store = openSqliteRunStore(`${outbox}.runs.db`);
const agent = durable(new ToolLoopAgent(settings), { store, effects: { find: "read" } });

const { text, steps, totalUsage } = await agent.generate({ prompt: "Tell Ada where her parcel is." });
const calls = steps.flatMap(({ toolCalls }) => toolCalls.map(({ toolName, input }) => ({ toolName, input })));
console.log(JSON.stringify({ text, calls, tokens: totalUsage.totalTokens }));
