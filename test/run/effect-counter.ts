// Counts effects by id in a separate process, which survives every kill of the agent.
import { createServer } from "node:http";

const counts = new Map<string, number>();
const server = createServer((request, response) => {
  const id = decodeURIComponent((request.url ?? "/").slice(1));
  if (request.method === "POST") counts.set(id, (counts.get(id) ?? 0) + 1);
  const body = id === "" ? Object.fromEntries(counts) : { count: counts.get(id) ?? 0 };
  if (request.method === "DELETE") counts.clear();
  response.end(JSON.stringify(body));
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" && address !== null ? address.port : 0}\n`);
});
process.on("disconnect", () => process.exit());
