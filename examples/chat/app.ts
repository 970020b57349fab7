// The server: POST streams an answer, GET reconnects to it from any page and after any number of restarts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createAgentUIStreamResponse } from "ai";
import { Hono } from "hono";
import type { createChatAgent } from "./agent.ts";

const PAGE = readFileSync(join(import.meta.dirname, "page.html"), "utf8");

/** Creates the application. */
export function createChatApp(agent: ReturnType<typeof createChatAgent>): Hono {
  const app = new Hono();
  app.get("/", (context) => context.html(PAGE));
  app.post("/api/chat", async (context) => {
    // The page chooses the id of the answer, so that it can reconnect even if it never got a byte.
    const { id, messages } = await context.req.json();
    return createAgentUIStreamResponse({
      agent: agent.withRun({ runId: id }),
      uiMessages: messages,
      generateMessageId: () => id,
    });
  });
  app.get("/api/chat/:id/stream", async (context) =>
    (await agent.follow(context.req.param("id"))).toUIMessageStreamResponse(),
  );
  app.onError((error, context) => {
    const code = "code" in error ? String(error.code) : "INTERNAL";
    return context.json({ code, message: error.message }, code === "RUN_UNKNOWN" ? 404 : 409);
  });
  return app;
}
