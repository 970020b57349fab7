// The workload of lazarus-program.ts on DBOS, in a process of its own: argv is the module of DBOS, the connection, and the
// number of runs. A step is what one step of a durable agent records: the response of the model, then the result of the tool.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { pathToFileURL } from "node:url";

const [, , entry, connection, count] = process.argv;
const { DBOS } = await import(pathToFileURL(entry).href);
const STEPS = 10;
const TEXT = "x".repeat(500);
DBOS.setConfig({ name: "bench", systemDatabaseUrl: connection, runAdminServer: false, logLevel: "error" });
const work = DBOS.registerWorkflow(
  async () => {
    for (let step = 1; step < STEPS; step += 1) {
      await DBOS.runStep(async () => ({ text: TEXT, call: { n: step } }), { name: "model" });
      await DBOS.runStep(async () => ({ ok: step }), { name: "tool" });
    }
    return DBOS.runStep(async () => ({ text: "done" }), { name: "model" });
  },
  { name: "work" },
);
await DBOS.launch();
await (await DBOS.startWorkflow(work)()).getResult();
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
let peak = 0;
const timer = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().rss);
}, 20);
const started = performance.now();
await Promise.all(
  Array.from({ length: Number(count) }, async () => (await DBOS.startWorkflow(work)()).getResult()),
);
const ms = performance.now() - started;
clearInterval(timer);
const { user, system } = process.cpuUsage();
process.stdout.write(JSON.stringify({ ms, peak, stallMs: delay.max / 1e6, cpuMs: (user + system) / 1000 }));
await DBOS.shutdown();
process.exit(0);
