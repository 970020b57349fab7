// A booting host: resumes the interrupted runs of a store and prints the results.
import {
  createExecutor,
  openPostgresRunStore,
  openSqliteRunStore,
  recoverInterrupted,
} from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";

const [path = "", text = "end"] = process.argv.slice(2);
await using store = path.startsWith("postgres:")
  ? await openPostgresRunStore(path)
  : openSqliteRunStore(path);
const executor = createExecutor({
  model: createScriptedModel([text.startsWith("*") ? "x".repeat(Number(text.slice(1))) : text]),
  store,
  checkpoint: { required: true },
});
const recovered = await recoverInterrupted(executor, { agentFor: () => ({ id: "a" }) });
process.stdout.write(
  JSON.stringify(
    recovered.map((each) => ({
      runId: each.runId,
      how: each.how,
      ...(each.how === "resumed" ? { status: each.result.status, warnings: each.result.warnings } : {}),
    })),
  ),
);
