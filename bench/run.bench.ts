// Durable runs: the cost of a save per step compared with LangGraph's savers and a bare insert, storage, and recovery.
import { mkdtempSync, statSync } from "node:fs";
import { join } from "node:path";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { openPostgresSaver, openSqliteSaver } from "../src/integrations/langgraph/index.ts";
import {
  createExecutor,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  recoverInterrupted,
} from "../src/run/index.ts";
import { startPostgres } from "../test/run/postgres-server.ts";
import { createScriptedModel } from "../test/run/scripted-model.ts";
import { type Bench, median, type Score } from "./harness.ts";
import { measureSteps } from "./run/durable-steps.ts";
import { measureLocalRuns } from "./run/local-runs.ts";
import { measureManyRuns } from "./run/many-runs.ts";
import { openStockSaver } from "./run/stock-saver.ts";
import { beginSteps, runGraph, saveSteps, twoKilobytes } from "./run/workload.ts";

const STEPS = 400;
const LONG = 1000;
const ROUNDS = 3;

export const bench: Bench = {
  about: `A durable step is what the record adds to a step of an AI SDK agent: the time of a conversation of ${STEPS} steps, each with 2 KB of
incompressible text and a tool call, minus that of the same agent without a store. It is compared with a whole step of a graph with
messages of the same size, saved by LangGraph's SQLite saver. That saver survives a kill but not a power cut, because it commits without
syncing the disk; the same is true of model responses and results of reads in our store, while the start and the end of an effect are synced.
Our saver is compared with theirs on the same graph, minus the time of the graph without a saver; ours syncs unless it is opened with
\`survives: "kill"\`.
Runs on PostgreSQL are compared with the same agent in a DBOS workflow, where its model and tool calls are steps: all
runs at the same time, each side in its own process with a new database. Both record each response before the tool runs and
each result before the model sees it, synced; ours also records the start of a call. Memory and stalls are those of that process.
Vercel's Workflow runs without its cloud on its local world: files that are not synced, and a queue that calls its bundles over HTTP. The same
steps as a workflow, without the SDK's loop, are compared with our agent on SQLite. A write
on PostgreSQL is also compared with one prepared statement that inserts the same bytes into two small tables and is fenced in the same
way, without what else ours records; no program works like that, so there is no goal. Other figures are compared with their goal.`,
  async prepare(directory) {
    const fresh = (name: string) => join(mkdtempSync(join(directory, `${name}-`)), `${name}.db`);
    return [
      { name: "durable steps", measure: () => measureSteps(fresh) },
      { name: "SQLite", measure: () => measureSqlite(fresh) },
      { name: "graph", measure: () => measureGraph(fresh) },
      { name: "PostgreSQL", measure: () => measurePostgres() },
      { name: "many runs", measure: () => measureMany(fresh) },
      { name: "DBOS", measure: () => measureManyRuns() },
      { name: "Workflow", measure: () => measureLocalRuns(fresh) },
    ];
  },
};

function score(
  name: string,
  ours: [string, number],
  peer: [string, number],
  goal: number,
  unit?: string,
): Score {
  return {
    ...{
      name,
      ours: ours[0],
      oursMs: ours[1],
      peer: peer[0],
      peerMs: peer[1],
      ratio: ours[1] / peer[1],
      goal,
    },
    rounds: ROUNDS,
    ...(unit === undefined ? {} : { unit }),
  };
}

async function measureSqlite(fresh: (name: string) => string): Promise<Score[]> {
  const early: number[] = [];
  const late: number[] = [];
  let bytes = 0;
  let transcriptSize = 0;
  let loadMs = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const path = fresh("runs");
    {
      await using store = openSqliteRunStore(path);
      transcriptSize = (await saveSteps(store, "r", STEPS)).transcriptBytes;
    }
    bytes = statSync(path).size;
    const longPath = fresh("long");
    await using long = openSqliteRunStore(longPath);
    const { ms } = await saveSteps(long, "long", LONG);
    early.push(median(ms.slice(5, 105)));
    late.push(median(ms.slice(LONG - 100)));
    const started = performance.now();
    const record = await long.load("long");
    loadMs = performance.now() - started;
    if (record?.transcript.length !== LONG) throw new Error("the long run did not load");
  }
  return [
    score("bytes of 400 steps", ["runs.db", bytes / 1e6], ["transcript", transcriptSize / 1e6], 1.5, "MB"),
    score(
      "steps 901–1,000 against steps 6–105",
      ["late save", median(late)],
      ["early save", median(early)],
      1.2,
    ),
    score("load of a 1,000-step run", ["store.load", loadMs], ["goal", 50], 1),
  ];
}

async function measureGraph(fresh: (name: string) => string): Promise<Score[]> {
  const ours: number[] = [];
  const oursKill: number[] = [];
  const theirs: number[] = [];
  const theirsSynced: number[] = [];
  const bare: number[] = [];
  let bytes = 0;
  let stockBytes = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push((await runGraph(undefined, "t", STEPS)) / STEPS);
    const path = fresh("graph");
    const saver = openSqliteSaver(path);
    ours.push((await runGraph(saver, "t", STEPS)) / STEPS);
    await saver[Symbol.asyncDispose]();
    bytes = statSync(path).size;
    await using light = openSqliteSaver(fresh("graph"), { survives: "kill" });
    oursKill.push((await runGraph(light, "t", STEPS)) / STEPS);
    const stockPath = fresh("stock");
    theirs.push((await runGraph(await openStockSaver(stockPath), "t", STEPS)) / STEPS);
    stockBytes = statSync(stockPath).size;
    theirsSynced.push((await runGraph(await openStockSaver(fresh("stock"), true), "t", STEPS)) / STEPS);
  }
  const added = (times: readonly number[]) => median(times.map((ms, i) => ms - bare[i]!));
  return [
    score(
      "what a saver adds to a step of a graph, surviving a kill",
      ['LazarusSaver, survives: "kill"', added(oursKill)],
      ["SqliteSaver", added(theirs)],
      0.2,
    ),
    score(
      "the same, surviving a power cut",
      ["LazarusSaver", added(ours)],
      ["SqliteSaver, synchronous=FULL", added(theirsSynced)],
      0.2,
    ),
    score(
      "the same, ours surviving a power cut and theirs a kill",
      ["LazarusSaver", added(ours)],
      ["SqliteSaver", added(theirs)],
      0.333,
    ),
    score("whole graph per step", ["LazarusSaver", median(ours)], ["SqliteSaver", median(theirs)], 1),
    score("bytes of 400 steps of a graph", ["LazarusSaver", bytes / 1e6], ["goal", 3], 1, "MB"),
    score(
      "the same, against theirs",
      ["LazarusSaver", bytes / 1e6],
      ["SqliteSaver", stockBytes / 1e6],
      0.1,
      "MB",
    ),
  ];
}

/** The least that a record of a step needs: only the owner's next write is accepted, and its lease is renewed. */
const FENCED_INSERT = `
  WITH moved AS (
    UPDATE bare_head SET seq = $3, lease_ms = $4 WHERE id = $1 AND epoch = $2 AND seq = $3 - 1 RETURNING id, seq)
  INSERT INTO bare_entry SELECT id, seq, $5 FROM moved`;

async function measurePostgres(): Promise<Score[]> {
  await using server = await startPostgres({ asInstalled: true });
  const connection = await server.createDatabase();
  const ours: number[] = [];
  const bare: number[] = [];
  {
    await using store = await openPostgresRunStore(connection, { maxConnections: 1, keepSecrets: true });
    const client = new pg.Client(connection);
    await client.connect();
    await client.query(`CREATE TABLE bare_head (id text PRIMARY KEY, epoch int, seq int, lease_ms bigint);
      CREATE TABLE bare_entry (id text, step int, body text, PRIMARY KEY (id, step));
      INSERT INTO bare_head VALUES ('r', 1, 0, 0)`);
    const write = await beginSteps(store, "r");
    for (let step = 0; step < STEPS; step += 1) {
      const content = twoKilobytes();
      const message = { role: "assistant" as const, content };
      let started = performance.now();
      await write(step + 1, content);
      ours.push(performance.now() - started);
      started = performance.now();
      await client.query({
        name: "bare",
        text: FENCED_INSERT,
        values: ["r", 1, step + 1, Date.now(), JSON.stringify(message)],
      });
      bare.push(performance.now() - started);
    }
    await client.end();
  }
  await using saver = await openPostgresSaver(connection);
  const pool = new pg.Pool({ connectionString: connection });
  // Its last connections may still be open when the server stops.
  pool.on("error", () => {});
  const stock = new PostgresSaver(pool);
  await stock.setup();
  const added = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const withoutMs = await runGraph(undefined, "t", STEPS);
    added.ours.push(((await runGraph(saver, `t${round}`, STEPS)) - withoutMs) / STEPS);
    added.theirs.push(((await runGraph(stock, `t${round}`, STEPS)) - withoutMs) / STEPS);
  }
  await stock.end();
  return [
    {
      ...score("step on PostgreSQL", ["one write", median(ours)], ["fenced insert by hand", median(bare)], 0),
      goal: undefined,
    },
    score(
      "what a saver adds to a step of a graph on PostgreSQL",
      ["LazarusSaver", median(added.ours)],
      ["PostgresSaver", median(added.theirs)],
      0.333,
    ),
  ];
}

async function measureMany(fresh: (name: string) => string): Promise<Score[]> {
  await using sqlite = openSqliteRunStore(fresh("many"));
  await using server = await startPostgres({ asInstalled: true });
  await using postgres = await openPostgresRunStore(await server.createDatabase());
  const scores: Score[] = [];
  for (const [name, store] of [
    ["SQLite", sqlite],
    ["PostgreSQL", postgres],
  ] as [string, RunStore][]) {
    const model = createScriptedModel(["done"]);
    const options = { model, store, checkpoint: { required: true } };
    const executor = createExecutor(options);
    const started = performance.now();
    const results = await Promise.all(
      Array.from({ length: LONG }, (_, i) => executor.run({ id: "a" }, "go", { runId: `c${i}` })),
    );
    const tookMs = performance.now() - started;
    const failed = results.filter(
      ({ status, warnings }) => status !== "completed" || warnings.length > 0,
    ).length;
    scores.push({
      ...score(`1,000 concurrent runs on ${name}: errors`, ["failed", failed], ["all", LONG], 0, "runs"),
      rounds: 1,
    });
    scores.push({
      ...score(`1,000 concurrent runs on ${name}: time`, ["executor.run", tookMs], ["goal", 30_000], 1),
      rounds: 1,
    });

    const down = createExecutor(options);
    await down.shutdown();
    await Promise.all(
      Array.from({ length: LONG }, (_, i) => down.run({ id: "a" }, "go", { runId: `i${i}` })),
    );
    const boot = performance.now();
    const recovered = await recoverInterrupted(createExecutor(options), {
      agentFor: () => ({ id: "a" }),
    });
    const bootMs = performance.now() - boot;
    const resumed = recovered.filter(
      (each) => each.how === "resumed" && each.result.status === "completed",
    ).length;
    if (resumed !== LONG) throw new Error(`${resumed} of ${LONG} runs resumed`);
    scores.push({
      ...score(
        `resume of 1,000 interrupted runs on ${name}`,
        ["recoverInterrupted", bootMs],
        ["goal", 5000],
        1,
      ),
      rounds: 1,
    });
  }
  return scores;
}
