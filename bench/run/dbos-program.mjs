// The runs of lazarus-program.mjs as workflows of DBOS, in a process of its own: argv is the module of DBOS, the connection and
// the number of runs. The call of the model and the call of the tool are a step of the workflow each.
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
