// Runs of a durable agent on PostgreSQL, in a process of its own: argv is the connection and the number of runs. The response of
// the model and the result of the tool are recorded, as in dbos-program.mjs, and a call that starts is, too.
import { durable, openPostgresRunStore } from "lazarus/run";
import { createAgent } from "./agent.mjs";
import { measure } from "./measure.mjs";

const [, , connection, count] = process.argv;
// DBOS does not look for secrets either.
await using store = await openPostgresRunStore(connection, { keepSecrets: true });
const agent = durable(createAgent(), { store, effects: { work: "idempotent" }, recover: false });
await measure(Number(count), async () => (await agent.generate({ prompt: "go" })).text);
