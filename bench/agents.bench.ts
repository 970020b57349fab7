// What hooks cost an agent CLI: the same job with and without them, in turn, against a mock model.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "../test/agents/real/agents.ts";
import { installAgent, VERSIONS } from "../test/agents/real/install.ts";
import { createRealWorld, MISSION, STEPS } from "../test/agents/real/real-world.ts";
import type { Bench, Score } from "./harness.ts";

const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 3);
const HOLD_SECONDS = 1;
const THINK_MS = 2000;
const LIMIT_MS = 60;
/** One for each way in which hooks are run: a script after a call, `lazarus hook` before and after it, and a plugin. */
const DEFAULT_AGENTS = "claude,codex,qwen,gemini,copilot,pi";
const notes: string[] = [];

interface Job {
  /** From the start of the agent's process to its end, as its keeper recorded them. */
  readonly ms: number;
  /** Reports of its hooks. */
  readonly hooks: number;
}

async function runJob(name: string, bin: string, noAdapter: boolean): Promise<Job> {
  await using real = await createRealWorld(name, { bin, hold: HOLD_SECONDS, thinkMs: THINK_MS, noAdapter });
  await real.world.openPit();
  real.start();
  await real.untilState("finished");
  const { life, end } = real.world.record(MISSION);
  if (real.chapters().length !== STEPS) throw new Error(`${name} has not finished its job`);
  const reports = join(real.world.home, "run", "agents", MISSION, "hooks.jsonl");
  const hooks = existsSync(reports) ? readFileSync(reports, "utf8").trimEnd().split("\n").length : 0;
  return { ms: end.at_ms - life.started_ms, hooks };
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

async function measure(name: string, bin: string): Promise<Score[]> {
  const pairs: { readonly ours: number; readonly peer: number; readonly hooks: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { ms: ours, hooks } = await runJob(name, bin, false);
    const { ms: peer } = await runJob(name, bin, true);
    pairs.push({ ours, peer, hooks });
  }
  const perCall = median(pairs.map(({ ours, peer }) => (ours - peer) / STEPS));
  const { hooks } = pairs[0]!;
  notes.push(`${name} ${VERSIONS[name]!.version}: ${hooks} hooks in ${STEPS} tool calls`);
  const wall: Score = {
    name: `${name}, ${STEPS} tool calls`,
    ours: "with hooks",
    oursMs: median(pairs.map(({ ours }) => ours)),
    peer: "without (run --no-adapter)",
    peerMs: median(pairs.map(({ peer }) => peer)),
    ratio: median(pairs.map(({ ours, peer }) => ours / peer)),
    goal: 1.03,
    rounds: ROUNDS,
  };
  // The hooks of the session and of the turn are counted as well.
  const call: Score = {
    name: `${name}, one tool call`,
    ours: "what hooks add",
    oursMs: perCall,
    peer: "the limit",
    peerMs: LIMIT_MS,
    ratio: perCall / LIMIT_MS,
    goal: 1,
    rounds: ROUNDS,
  };
  return [wall, call];
}

export const bench: Bench = {
  about: `Wall time of an agent with the hooks that Lazarus passes, and without them. Each of ${STEPS} steps is a response of the
model (${THINK_MS / 1000} s, which is fast for a real one) and a tool call (${HOLD_SECONDS} s). The CLIs are those of \`npm run test:agents\`;
AGENTS=claude,codex chooses them.`,
  prepare() {
    const wanted = (process.env.AGENTS ?? DEFAULT_AGENTS).split(",").filter((name) => name in AGENTS);
    return wanted.map((name) => ({
      name,
      async measure() {
        const installed = installAgent(name);
        if ("problem" in installed) {
          notes.push(`not measured: ${installed.problem}`);
          return [];
        }
        return await measure(name, installed.bin);
      },
    }));
  },
  notes: () => notes,
};
