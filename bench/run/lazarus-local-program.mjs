// Runs of a durable agent on SQLite, in its own process: argv is the path of the database and the number of runs.
import { durable, openSqliteRunStore } from "lazarus/run";
import { createAgent } from "./agent.mjs";
import { measure } from "./measure.mjs";

const [, , path, count] = process.argv;
await using store = openSqliteRunStore(path, { keepSecrets: true });
const agent = durable(createAgent(), { store, effects: { work: "idempotent" }, recover: false });
await measure(Number(count), async () => (await agent.generate({ prompt: "go" })).text);
