// 1,000 runs of 10 steps on PostgreSQL against DBOS: each side in its own process, in turn, on a new database of the same
// server. LAZARUS_BENCH_RUNS=200 is for a busy machine.
import { join } from "node:path";
import { startPostgres } from "../../test/run/postgres-server.ts";
import { median, runProgram, type Score } from "../harness.ts";
import { buildProduct, installPeer } from "./peers.ts";

const RUNS = Number(process.env.LAZARUS_BENCH_RUNS ?? 1000);
const ROUNDS = 3;
const STALL_MS = 100;

interface Figures {
  readonly ms: number;
  readonly peak: number;
  readonly stallMs: number;
  readonly cpuMs: number;
}

export async function measureManyRuns(): Promise<Score[]> {
  buildProduct();
  const dbos = installPeer("dbos", ["@dbos-inc/dbos-sdk@5"]);
  const entry = join(dbos, "node_modules", "@dbos-inc", "dbos-sdk", "dist", "src", "index.js");
  await using server = await startPostgres({ asInstalled: true });
  const [ours, theirs, plain]: [Figures[], Figures[], Figures[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    plain.push(runSide(["plain-program.mjs"], ""));
    // Alternate the order: the second side finds warmer caches.
    for (const isOurs of round % 2 === 0 ? [true, false] : [false, true]) {
      const connection = await server.createDatabase();
      const program = isOurs ? ["lazarus-program.mjs"] : ["dbos-program.mjs", entry];
      (isOurs ? ours : theirs).push(runSide(program, connection));
    }
  }
  const pair = (figure: (figures: Figures, round: number) => number) => ({
    oursMs: median(ours.map(figure)),
    peerMs: median(theirs.map(figure)),
    ratio: median(ours.map((each, i) => figure(each, i) / figure(theirs[i]!, i))),
  });
  const names = { ours: "durable agent", peer: "agent in a DBOS workflow", rounds: ROUNDS };
  const what = `${RUNS.toLocaleString("en")} runs of 10 steps on PostgreSQL`;
  const added = ({ cpuMs }: Figures, round: number) => cpuMs - plain[round]!.cpuMs;
  const stallMs = median(ours.map((each) => each.stallMs));
  return [
    { name: `${what}: time`, ...names, ...pair(({ ms }) => ms), goal: 0.667 },
    { name: `${what}: peak memory`, ...names, ...pair(({ peak }) => peak / 1e6), goal: 1, unit: "MB" },
    {
      ...{ name: `${what}: longest stall of the event loop`, ...names, peer: "goal", goal: 1 },
      ...{ oursMs: stallMs, peerMs: STALL_MS, ratio: stallMs / STALL_MS },
    },
    {
      ...{ name: `${what}: processor time added to the plain agent`, ...names, goal: undefined },
      ...pair(added),
    },
  ];
}

function runSide([program, ...args]: readonly string[], connection: string): Figures {
  const path = join(import.meta.dirname, program!);
  return JSON.parse(
    runProgram(process.execPath, [path, ...args, connection, String(RUNS)], { output: true }),
  );
}
