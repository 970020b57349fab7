// Health and heartbeats inside a plain node:http server.
//
//   node examples/health/node-http.ts /var/missions 8080
//   curl localhost:8080/health
//   curl -X POST -H "Authorization: Bearer $TOKEN" -d '{"status":"thinking"}' localhost:8080/v1/missions/m1/heartbeat
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createHealthHandler } from "lazarus/health";

const [missionsRoot = "/var/missions", port = "8080"] = process.argv.slice(2);
const token = process.env.TOKEN;
const health = createHealthHandler({ missionsRoot, ...(token ? { token } : {}) });

const server = createServer(async (incoming, outgoing) => {
  const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
  const request = new Request(new URL(incoming.url ?? "/", "http://gateway"), {
    method: incoming.method ?? "GET",
    headers: incoming.headers as Record<string, string>,
    ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {}),
  });
  const response = await health(request);
  if (response === undefined) outgoing.writeHead(200).end("the gateway's own page\n");
  else outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
});
server.listen(Number(port), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on ${typeof address === "object" ? address?.port : address}`);
});
