// Audit log and budget: both are ports of an executor.
//
//   node examples/library/batteries.ts ./home
import { join } from "node:path";
import { createBudget, openAuditLog } from "lazarus/batteries";
import { createExecutor } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";

using audit = openAuditLog(join(process.argv[2] ?? ".", "audit.db"));
const budget = createBudget({ windowMs: 3_600_000, tokens: 100_000 });
const executor = createExecutor({ model: createScriptedModel(["Done."]), ports: { audit, budget } });
const { runId } = await executor.run({ id: "assistant" }, "Say done.", { callerId: "ada" });
console.log(
  `ok: ${audit
    .read(runId)
    .map(({ kind }) => kind)
    .join(", ")}`,
);
