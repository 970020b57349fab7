// A host whose agent has a tool that kills the process, unless the third argument is `fixed`. It begins or resumes the run
// and prints the result.
import { jsonSchema } from "ai";
import {
  type Agent,
  createExecutor,
  type EffectClass,
  openCellRunStore,
  recoverInterrupted,
} from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";

const [cell = "", effect = "", state = ""] = process.argv.slice(2);
const agent: Agent = {
  id: "crashing",
  tools: {
    act: {
      inputSchema: jsonSchema<object>({ type: "object" }),
      effect: effect as EffectClass,
      execute() {
        if (state !== "fixed") process.kill(process.pid, "SIGKILL");
        return "acted";
      },
    },
  },
};
await using store = openCellRunStore(cell);
const executor = createExecutor({
  model: createScriptedModel([{ calls: [{ tool: "act", input: {} }] }, "done"]),
  store,
  checkpoint: { required: true },
});
if ((await store.head("r1")) === undefined) await executor.run(agent, "go", { runId: "r1" });
const recovered = await recoverInterrupted(executor, { agentFor: () => agent });
process.stdout.write(
  JSON.stringify(
    recovered.map((each) => ({
      how: each.how,
      reason: each.how === "skipped" ? each.reason : null,
      status: each.how === "resumed" ? each.result.status : null,
    })),
  ),
);
