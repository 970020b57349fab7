// Health and heartbeats inside an Express app, mounted before any body parser.
//
//   TOKEN=… node examples/health/express.ts /var/missions 8080
import { Readable } from "node:stream";
import express from "express";
import { createHealthHandler } from "lazarus/health";

const [missionsRoot = "/var/missions", port = "8080"] = process.argv.slice(2);
const token = process.env.TOKEN;
const health = createHealthHandler({ missionsRoot, ...(token ? { token } : {}) });

const app = express();
app.use(async (incoming, outgoing, next) => {
  const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
  const request = new Request(new URL(incoming.originalUrl, "http://gateway"), {
    method: incoming.method,
    headers: incoming.headers as Record<string, string>,
    ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {}),
  });
  const response = await health(request);
  if (response === undefined) return next();
  outgoing
    .status(response.status)
    .set(Object.fromEntries(response.headers))
    .send(await response.text());
});
app.get("/", (_, outgoing) => {
  outgoing.send("the gateway's own page\n");
});

const server = app.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on ${typeof address === "object" ? address?.port : address}`);
});
