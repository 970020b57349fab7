// The server of examples/chat with a model that the test paces: each line on stdin is the number of fragments that it may
// stream. Ends with the test.
import { createInterface } from "node:readline";
import { serve } from "@hono/node-server";
import { createChatAgent } from "../../../examples/chat/agent.ts";
import { createChatApp } from "../../../examples/chat/app.ts";
import { createSlowModel } from "../../../examples/chat/model.ts";

let allowed = 0;
let wake = Promise.withResolvers<void>();
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  allowed += Number(line);
  wake.resolve();
  wake = Promise.withResolvers();
});
lines.on("close", () => process.exit());

async function pause(): Promise<void> {
  while (allowed <= 0) await wake.promise;
  allowed -= 1;
}

const [directory = "", port = "0"] = process.argv.slice(2);
const app = createChatApp(createChatAgent(directory, createSlowModel(pause)));
serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" }, (address) => {
  console.log(address.port);
});
