// The runs of lazarus-program.mjs as DBOS workflows, in their own process: argv is the module of DBOS, the connection and
// the number of runs. The model call and the tool call are one workflow step each.
import { pathToFileURL } from "node:url";
import { createAgent } from "./agent.mjs";
import { measure } from "./measure.mjs";

const [, , entry, connection, count] = process.argv;
const { DBOS } = await import(pathToFileURL(entry).href);
DBOS.setConfig({ name: "bench", systemDatabaseUrl: connection, runAdminServer: false, logLevel: "error" });
const agent = createAgent((name, call) => DBOS.runStep(call, { name }));
const work = DBOS.registerWorkflow(async () => (await agent.generate({ prompt: "go" })).text, {
  name: "work",
});
await DBOS.launch();
await measure(Number(count), async () => (await DBOS.startWorkflow(work)()).getResult());
await DBOS.shutdown();
process.exit(0);
