// A watchdog: a run that is silent for too long gets a nudge, and is killed if it stays silent.
//
//   node examples/library/critic.ts
import { createCritic } from "lazarus/critic";
import { createExecutor } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";

const watchdog = createCritic({
  softTimeoutMs: 60_000,
  hardMultiplier: 3,
  onSoftTimeout: (_, { idleMs }) => (idleMs < 120_000 ? { nudge: "Are you still there?" } : { kill: true }),
});
const executor = createExecutor({ model: createScriptedModel(["Done."]), ports: { watchdog } });
const { status } = await executor.run({ id: "assistant" }, "Say done.");
console.log(`ok: ${status}`);
