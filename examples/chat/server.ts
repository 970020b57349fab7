// A chat that survives its server. Kill it with SIGKILL while it writes and start it again: the page continues.
//
//   node examples/chat/server.ts ./chat-data 8080
import { mkdirSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { createChatAgent } from "./agent.ts";
import { createChatApp } from "./app.ts";
import { createSlowModel } from "./model.ts";

const [directory = "chat-data", port = "8080"] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const agent = createChatAgent(
  directory,
  createSlowModel(() => setTimeout(150)),
);
serve({ fetch: createChatApp(agent).fetch, port: Number(port), hostname: "127.0.0.1" }, (address) => {
  console.log(`http://127.0.0.1:${address.port}`);
});
