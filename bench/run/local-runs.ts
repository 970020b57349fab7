// A few runs without a server: ours on SQLite against Vercel's Workflow on its local world. Each side in a process of its own.
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { median, runProgram, type Score } from "../harness.ts";
import { buildProduct, installPeer, runPeer } from "./peers.ts";

const RUNS = 10;
const ROUNDS = 3;

export async function measureLocalRuns(fresh: (name: string) => string): Promise<Score[]> {
  buildProduct();
  const peer = buildWorkflow();
  const times: { readonly ours: number; readonly theirs: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const path = fresh("local");
    const ours = run(["lazarus-local-program.mjs", path], dirname(path));
    times.push({ ours, theirs: run(["workflow-program.mjs", peer], dirname(fresh("workflow"))) });
  }
  return [
    {
      ...{ name: `${RUNS} runs of 10 steps without a server: time`, rounds: ROUNDS, goal: 1 },
      ...{ ours: "durable agent on SQLite", peer: "Workflow, local world" },
      ...{ oursMs: median(times.map(({ ours }) => ours)), peerMs: median(times.map(({ theirs }) => theirs)) },
      ratio: median(times.map(({ ours, theirs }) => ours / theirs)),
    },
  ];
}

function run([program, ...args]: readonly string[], cwd: string): number {
  const path = join(import.meta.dirname, program!);
  return JSON.parse(runProgram(process.execPath, [path, ...args, String(RUNS)], { cwd, output: true })).ms;
}

/** Compiles the workflow with the compiler of the installed package. */
function buildWorkflow(): string {
  const directory = installPeer("workflow", ["workflow@4"]);
  mkdirSync(join(directory, "workflows"), { recursive: true });
  copyFileSync(join(import.meta.dirname, "workflow-source.ts"), join(directory, "workflows", "talk.ts"));
  const bin = join(directory, "node_modules", "workflow", "bin", "run.js");
  runPeer(process.execPath, [bin, "build", "--target", "standalone"], directory);
  return directory;
}
