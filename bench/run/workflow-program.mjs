// Runs of workflow-source.ts in a process of its own, on Workflow's local world: files under the current directory, and a queue that
// delivers to the two bundles over HTTP. argv is the directory with the bundles and the number of runs.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { measure } from "./measure.mjs";

const [, , directory, count] = process.argv;
const { resolve } = createRequire(join(directory, "package.json"));
const bundles = new Map();
for (const name of ["flow", "step"]) {
  const path = join(directory, ".well-known", "workflow", "v1", `${name}.js`);
  bundles.set(name, await import(pathToFileURL(path).href));
}
const server = createServer(async (request, response) => {
  const body = Buffer.concat(await Array.fromAsync(request));
  const { POST } = bundles.get(new URL(request.url, "http://localhost").pathname.split("/").at(-1));
  const { headers, method } = request;
  const answer = await POST(new Request(`http://localhost${request.url}`, { method, headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
process.env.WORKFLOW_LOCAL_BASE_URL = `http://127.0.0.1:${server.address().port}`;
process.env.WORKFLOW_TARGET_WORLD = "local";
const { start } = await import(pathToFileURL(resolve("workflow/api")).href);
const talk = { workflowId: "workflow//./workflows/talk//talk" };
await measure(Number(count), async () => (await start(talk, [])).returnValue);
process.exit(0);
