// The pit: time from SIGKILL to running again, and the cost of 500 live agents and of one keeper. The peer is the goal
// itself, so a ratio of at most 1 meets it.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../src/cell/config.ts";
import { readLife } from "../src/cell/life.ts";
import { parseMissionId } from "../src/cell/mission-id.ts";
import { openPitContext, type PitContext } from "../src/pit/context.ts";
import { readRecord } from "../src/pit/record/store.ts";
import { startMission } from "../src/pit/start-mission.ts";
import { stopMission } from "../src/pit/stop.ts";
import { systemMachine } from "../src/platform/machine.ts";
import { openRegistry } from "../src/registry/registry.ts";
import { type Bench, median, type Score } from "./harness.ts";

const LAUNCHER = join(import.meta.dirname, "..", "bin", "lazarus.js");
const FILES = 10_000;
const ROUNDS = 15;
const AGENTS = 500;
const MASS = 200;
const WATCH_SECONDS = 20;
const notes: string[] = [];

export const bench: Bench = {
  about: `An agent in a cell of ${FILES.toLocaleString("en")} files is killed with SIGKILL; the clock stops when the process of the
next life exists, after the checkpoint was taken and indexed. Then ${AGENTS} agents run while one pit watches them.`,
  prepare: (directory) => [
    { name: "SIGKILL → running again", measure: () => measureRevival(join(directory, "revival")) },
    { name: `${MASS} agents killed at once`, measure: () => measureMassRevival(join(directory, "mass")) },
    { name: `${AGENTS} live agents`, measure: () => measureCrowd(join(directory, "crowd")) },
  ],
  notes: () => notes,
};

function against(name: string, figure: number, goal: number, unit?: string, rounds = 1): Score {
  const base = {
    name,
    ours: "lazarus pit",
    oursMs: figure,
    peer: "the goal",
    peerMs: goal,
    ratio: figure / goal,
  };
  return { ...base, goal: 1, rounds, ...(unit === undefined ? {} : { unit }) };
}

function world(home: string, pit: object): { pitContext: PitContext; open(): ChildProcess } {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "config.json"), JSON.stringify({ pit }));
  const env = { HOME: home, LAZARUS_HOME: home, PATH: process.env.PATH ?? "" };
  const effective = loadConfig({ env, cwd: home, isRoot: false });
  const pitContext = openPitContext({
    machine: systemMachine,
    effective,
    version: "bench",
    environment: env,
    cwd: home,
    log: () => {},
    warn: (line) => process.stderr.write(`${line}\n`),
  });
  return {
    pitContext,
    open: () =>
      spawn(process.execPath, [LAUNCHER, "pit"], { env, cwd: home, stdio: ["ignore", "ignore", "inherit"] }),
  };
}

const orders = (mission: string) => ({
  mission,
  agent: "sleep",
  command: ["sleep", "100000"],
  cwd: null,
  env: {},
  revive: "yes" as const,
  substitute: null,
  stall_seconds: null,
});

async function measureRevival(home: string): Promise<Score[]> {
  const { pitContext, open } = world(home, {
    backoff_seconds: [0],
    max_revivals_per_hour: 1e6,
    alike_crashes_per_step: 1e6,
  });
  const mission = parseMissionId("m1");
  const worktree = join(pitContext.config.missions_root, mission, "worktree");
  for (let n = 0; n < FILES; n += 1) {
    const directory = join(worktree, `d${n % 100}`);
    if (n < 100) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `f${n}.txt`), `file ${n}\n${"x".repeat(n % 2000)}\n`);
  }
  const pit = open();
  const totals: number[] = [];
  const parts: { notice: number; checkpoint: number; start: number }[] = [];
  try {
    await startMission(pitContext, orders(mission));
    // The first checkpoint stores everything; measure the incremental ones.
    for (let round = -2; round < ROUNDS; round += 1) {
      await pause(400);
      for (let n = 0; n < 10; n += 1)
        writeFileSync(join(worktree, `d${n}`, `changed-${n}.txt`), `${round}\n`);
      const { epoch, agent } = readLife(pitContext.config, mission)!;
      const killedMs = Date.now();
      const begun = performance.now();
      process.kill(agent.pid, "SIGKILL");
      while ((readLife(pitContext.config, mission)?.epoch ?? 0) <= epoch) await pause(1);
      if (round < 0) continue;
      totals.push(performance.now() - begun);
      const record = readRecord(pitContext.config, mission)!;
      using registry = openRegistry(systemMachine, pitContext.config.registry_file);
      const taken = registry.events({ mission, last: 5 }).findLast(({ kind }) => kind === "checkpoint");
      parts.push({
        notice: record.end!.noticed_ms - killedMs,
        checkpoint: (taken?.time_ms ?? 0) - record.end!.noticed_ms,
        start: killedMs + totals.at(-1)! - (taken?.time_ms ?? 0),
      });
    }
    const part = (key: keyof (typeof parts)[number]) => median(parts.map((each) => each[key])).toFixed(0);
    notes.push(
      `Medians of the parts of a revival: noticed after ${part("notice")} ms, checkpoint ${part("checkpoint")} ms, fencing, resume note and start ${part("start")} ms; slowest of ${ROUNDS}: ${Math.max(...totals).toFixed(0)} ms.`,
    );
    return [
      against(
        `SIGKILL → running again, ${FILES.toLocaleString("en")} files`,
        median(totals),
        1000,
        undefined,
        ROUNDS,
      ),
    ];
  } finally {
    pit.kill("SIGKILL");
    await stopMission(pitContext, mission, { checkpoint: false, graceSeconds: 0 });
    pitContext[Symbol.dispose]();
  }
}

/** Time until the last of them runs again, and the CPU time of the pit and all its children per revival. */
async function measureMassRevival(home: string): Promise<Score[]> {
  const { pitContext, open } = world(home, {
    backoff_seconds: [0],
    max_revivals_per_hour: 1e6,
    alike_crashes_per_step: 1e6,
    checkpoint_at_shutdown: false,
  });
  const names = Array.from({ length: MASS }, (_, n) => parseMissionId(`mass-${n}`));
  let pit: ChildProcess | undefined;
  try {
    for (const name of names) await startMission(pitContext, orders(name));
    pit = open();
    await pause(5000);
    const lives = new Map(names.map((name) => [name, readLife(pitContext.config, name)!]));
    const before = machineTicks();
    const ownBefore = process.cpuUsage();
    const start = performance.now();
    for (const { agent } of lives.values()) process.kill(agent.pid, "SIGKILL");
    const left = new Set(names);
    while (left.size > 0) {
      await pause(50);
      for (const name of left)
        if ((readLife(pitContext.config, name)?.epoch ?? 0) > lives.get(name)!.epoch) left.delete(name);
    }
    const tookMs = performance.now() - start;
    const own = process.cpuUsage(ownBefore);
    // Without the bench itself, which reads 200 files every 50 ms.
    const cpuMs = ((machineTicks() - before) * 10 - (own.user + own.system) / 1000) / MASS;
    return [
      against(`${MASS} agents killed at once, until the last runs again`, tookMs, 20_000),
      against("CPU time of the whole machine per revival", cpuMs, 35),
    ];
  } finally {
    pit?.kill("SIGKILL");
    for (const name of names)
      await stopMission(pitContext, name, { checkpoint: false, graceSeconds: 0 }).catch(() => {});
    pitContext[Symbol.dispose]();
  }
}

/** Busy time of all cores: includes short processes and those without a waiting parent. */
function machineTicks(): number {
  const [, user, nice, system] = readFileSync("/proc/stat", "latin1").split(/\s+/);
  return Number(user) + Number(nice) + Number(system);
}

async function measureCrowd(home: string): Promise<Score[]> {
  const { pitContext, open } = world(home, { checkpoint_at_shutdown: false });
  const names = Array.from({ length: AGENTS }, (_, n) => `mission-${String(n).padStart(3, "0")}`);
  const each = async (work: (name: string) => Promise<unknown>) => {
    const left = [...names];
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let name = left.pop(); name !== undefined; name = left.pop()) await work(name);
      }),
    );
  };
  let pit: ChildProcess | undefined;
  try {
    await each((name) => startMission(pitContext, orders(name)));
    const keepers = names.map((name) =>
      costOfKeeper(readLife(pitContext.config, parseMissionId(name))!.keeper.pid),
    );
    pit = open();
    await pause(8000);
    const before = cpuTicks(pit.pid!);
    await pause(WATCH_SECONDS * 1000);
    const share = ((cpuTicks(pit.pid!) - before) / 100 / WATCH_SECONDS) * 100;
    const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pit.pid}/status`, "utf8"))![1]) / 1024;
    const rss = median(keepers.map((keeper) => keeper.rss));
    notes.push(
      `A keeper is a shell, its helper and the helper's sleep. ${rss.toFixed(2)} MiB is the sum of their resident sizes, mostly shared pages; the proportional share (PSS) is ${median(keepers.map((keeper) => keeper.pss)).toFixed(2)} MiB.`,
    );
    return [
      against(`pit with ${AGENTS} live agents, share of one core`, share, 5, "%"),
      against(`pit with ${AGENTS} live agents, memory`, memory, 200, "MiB"),
      against("one detached keeper, memory", rss, 5, "MiB", AGENTS),
    ];
  } finally {
    pit?.kill("SIGKILL");
    await each((name) =>
      stopMission(pitContext, parseMissionId(name), { checkpoint: false, graceSeconds: 0 }).catch(() => {}),
    );
    pitContext[Symbol.dispose]();
  }
}

/** The keeper and its own children, without the agent. */
function costOfKeeper(pid: number): { rss: number; pss: number } {
  let rss = 0;
  let pss = 0;
  const open = [pid];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    try {
      if (readFileSync(`/proc/${one}/environ`, "latin1").includes("LAZARUS_EPOCH=")) continue;
      const text = readFileSync(`/proc/${one}/smaps_rollup`, "latin1");
      rss += Number(/^Rss:\s+(\d+)/m.exec(text)![1]) / 1024;
      pss += Number(/^Pss:\s+(\d+)/m.exec(text)![1]) / 1024;
      open.push(
        ...readFileSync(`/proc/${one}/task/${one}/children`, "latin1").split(" ").filter(Boolean).map(Number),
      );
    } catch {}
  }
  return { rss, pss };
}

function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
