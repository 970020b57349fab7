// What hooks cost an agent CLI: the same job with and without them, in turn, against a mock model.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "../test/agents/real/agents.ts";
import { installAgent, VERSIONS } from "../test/agents/real/install.ts";
import { createRealWorld, MISSION, STEPS } from "../test/agents/real/real-world.ts";
import { hookCpuMs } from "./agents/hook-cpu.ts";
import { measureLongConversation } from "./agents/long-conversation.ts";
import { type Bench, median, type Score } from "./harness.ts";

/** All CLIs with hooks together take a quarter of an hour. */
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 2);
const HOLD_SECONDS = 1;
const THINK_MS = 1500;
const LIMIT_MS = 60;
const WITH_HOOKS = "claude,codex,gemini,qwen,opencode,pi,copilot,cline";
const notes: string[] = [];

interface Job {
  /** From the start of the agent's process to its end, as its keeper recorded them. */
  readonly ms: number;
  /** From the first request for a step to the last request: without the start of the process, which varies. */
  readonly stepsMs: number;
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
  const first = real.model.requests.find(({ next }) => next === 1)!;
  const last = real.model.requests.find(({ next }) => next === "done")!;
  return { ms: end.at_ms - life.started_ms, stepsMs: last.atMs - first.atMs, hooks };
}

async function measure(name: string, bin: string, rounds: number): Promise<Score[]> {
  const pairs: { readonly ours: Job; readonly peer: Job }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Alternate the order: the second side finds warmer caches.
    const oursFirst = round % 2 === 0;
    const first = await runJob(name, bin, !oursFirst);
    const second = await runJob(name, bin, oursFirst);
    pairs.push(oursFirst ? { ours: first, peer: second } : { ours: second, peer: first });
  }
  const perCall = median(pairs.map(({ ours, peer }) => (ours.stepsMs - peer.stepsMs) / STEPS));
  const { hooks } = pairs[0]!.ours;
  const cpuMs = await hookCpuMs(name);
  const { version } = VERSIONS[name]!;
  notes.push(
    `${name} ${version}: ${hooks} reports of hooks, ${cpuMs.toFixed(1)} ms of CPU time for those of one tool call`,
  );
  const wall: Score = {
    name: `${name}, ${STEPS} tool calls`,
    ours: "with hooks",
    oursMs: median(pairs.map(({ ours }) => ours.ms)),
    peer: "without (run --no-adapter)",
    peerMs: median(pairs.map(({ peer }) => peer.ms)),
    ratio: median(pairs.map(({ ours, peer }) => ours.ms / peer.ms)),
    goal: 1.03,
    rounds,
  };
  const call: Score = {
    name: `${name}, one tool call`,
    ours: "what hooks add",
    oursMs: perCall,
    peer: "the limit",
    peerMs: LIMIT_MS,
    ratio: perCall / LIMIT_MS,
    goal: 1,
    rounds,
  };
  return [wall, call];
}

export const bench: Bench = {
  about: `Wall time of an agent with the hooks that Lazarus passes, and without them. Each of ${STEPS} steps is a response of the
model (${THINK_MS / 1000} s, which is fast for a real one) and a tool call (${HOLD_SECONDS} s). What hooks add to a tool call is taken between
the first and the last request to the model. CPU time is that of all processes which the hooks before and after a call start. The
CLIs are those of \`npm run test:agents\` that have hooks; AGENTS=claude,codex chooses them. The live points of a mission with a long
conversation are taken by one process, as the pit takes them.`,
  prepare(_, { rounds = ROUNDS }) {
    const wanted = (process.env.AGENTS ?? WITH_HOOKS).split(",").filter((name) => name in AGENTS);
    const agents = wanted.map((name) => ({
      name,
      async measure() {
        const installed = installAgent(name);
        if ("problem" in installed) {
          notes.push(`not measured: ${installed.problem}`);
          return [];
        }
        return await measure(name, installed.bin, rounds);
      },
    }));
    return [{ name: "a long conversation", measure: measureLongConversation }, ...agents];
  },
  notes: () => notes,
};
