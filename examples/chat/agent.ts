// The agent of the chat: a plain AI SDK ToolLoopAgent, made durable with durable().
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isStepCount, type LanguageModel, ToolLoopAgent, tool } from "ai";
import { currentEffect, durable, openSqliteRunStore } from "lazarus/run";
import { z } from "zod";

/** Creates the agent; `directory` holds its runs and the mails that it sent. */
export function createChatAgent(directory: string, model: LanguageModel) {
  const outbox = join(directory, "outbox.jsonl");
  const isSent = (id: string) => existsSync(outbox) && readFileSync(outbox, "utf8").includes(`"${id}"`);
  const tools = {
    send: tool({
      description: "Sends a mail.",
      inputSchema: z.object({ to: z.string(), text: z.string() }),
      execute: ({ to, text }) => {
        appendFileSync(outbox, `${JSON.stringify({ id: currentEffect()?.id, to, text })}\n`);
        return "sent";
      },
    }),
  };
  const plain = new ToolLoopAgent({
    id: "chat",
    model, // or: model: anthropic("claude-sonnet-4-5"),
    instructions: "Help with mail.",
    tools,
    toolApproval: { send: "user-approval" },
    stopWhen: isStepCount(10),
  });
  return durable(plain, {
    store: openSqliteRunStore(join(directory, "runs.db")),
    // Killed while sending: the outbox shows whether it happened.
    effects: {
      send: {
        reconcile: (id) => (isSent(id) ? { outcome: "done", output: "sent" } : { outcome: "not-done" }),
      },
    },
  });
}
