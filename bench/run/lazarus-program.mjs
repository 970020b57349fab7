// Runs of a durable agent on PostgreSQL, in their own process: argv is the connection and the number of runs. The model's
// response and the tool's result are recorded, as in dbos-program.mjs, and so is the start of a call.
import { durable, openPostgresRunStore } from "lazarus/run";
import { createAgent } from "./agent.mjs";
import { measure } from "./measure.mjs";

const [, , connection, count] = process.argv;
// DBOS does not search for secrets either.
await using store = await openPostgresRunStore(connection, { keepSecrets: true });
const agent = durable(createAgent(), { store, effects: { work: "idempotent" }, recover: false });
await measure(Number(count), async () => (await agent.generate({ prompt: "go" })).text);
