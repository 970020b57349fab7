// Kills agent, keeper and pit, alone and in pairs, at random times, and counts the results. The agent itself logs that it is
// alive, outside of everything that Lazarus touches, so that overlapping lives are detected.
import type { ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "../../src/testing/seeded-ids.ts";
import { createPitWorld, killIfRunning } from "./pit-world.ts";

export interface Tally {
  readonly seed: number;
  readonly rounds: number;
  readonly crashes: number;
  readonly pitKills: number;
  /** Lives after the first, as the agent itself logged them. */
  readonly lives: number;
  /** Revivals in the event log; a pit that is killed right after a start has not recorded it. */
  readonly revivals: number;
  readonly checkpoints: number;
  /** Lives that overlapped. */
  readonly overlaps: string[];
  readonly orphans: number[];
  /** Lives that crashed without a crash checkpoint. */
  readonly missingCheckpoints: number[];
  readonly slowestMs: number;
}

const VICTIMS = ["agent", "keeper", "pit", "agent+keeper", "agent+pit", "keeper+pit"] as const;

/** Logs its epoch every few milliseconds until it is killed. */
const AGENT = `
const fs = require("node:fs");
const [log] = process.argv.slice(1);
const beat = () => fs.appendFileSync(log, process.env.LAZARUS_EPOCH + " " + process.hrtime.bigint() + "\\n");
beat();
setInterval(beat, 5);
`;

export async function killRounds(rounds: number, seed: number): Promise<Tally> {
  const world = createPitWorld();
  const random = createRandom(seed);
  const log = join(world.directory, "lives.log");
  writeFileSync(log, "");
  const settings = {
    backoff_seconds: [0],
    max_revivals_per_hour: 100_000,
    alike_crashes_per_step: 100_000,
    leftover_grace_seconds: 0.2,
  };
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: settings }));
  try {
    let pit: ChildProcess = await world.openPit();
    const start = world.run(["run", "m1", "-d", "--revive", "yes", "--", process.execPath, "-e", AGENT, log]);
    if (start.exit !== 0) throw new Error(start.stderr);
    const { epoch: first } = world.life("m1");
    let slowestMs = 0;
    let crashes = 0;
    let pitKills = 0;
    for (let round = 0; round < rounds; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, random.int(0, 250)));
      const victims = random.pick(VICTIMS);
      const { epoch, agent, keeper } = world.life("m1");
      appendFileSync(join(world.directory, "rounds.log"), `${round} ${victims} in life ${epoch}\n`);
      const killedMs = performance.now();
      if (victims.includes("pit")) pit.kill("SIGKILL");
      if (victims.includes("agent")) killIfRunning(agent.pid);
      if (victims.includes("keeper")) killIfRunning(keeper.pid);
      const ends = victims !== "pit";
      if (ends) crashes += 1;
      if (victims.includes("pit")) {
        pitKills += 1;
        await world.until("the pit's end", () => pit.signalCode !== null || pit.exitCode !== null);
        pit = await world.openPit();
      }
      // A kill during a start may skip a life: what counts is that a later one runs.
      await world.until(`a life after ${epoch} (seed ${seed}, round ${round}: ${victims})`, () => {
        const now = world.life("m1");
        return (
          (!ends || now.epoch > epoch) &&
          lastBeatEpoch(log) >= now.epoch &&
          existsSync(`/proc/${now.agent.pid}`)
        );
      });
      if (ends) slowestMs = Math.max(slowestMs, performance.now() - killedMs);
    }
    world.run(["stop", "m1", "--no-checkpoint", "--grace", "0"]);
    pit.kill("SIGTERM");
    await world.until("the pit's exit", () => pit.exitCode !== null || pit.signalCode !== null);
    await world.until("no process left", () => world.processes().length === 0).catch(() => {});
    const events = world
      .run(["events", "m1", "--json", "-n", "0"])
      .stdout.trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const checkpointed = new Set<number>();
    let dead: number | undefined;
    for (const { kind, data } of events) {
      if (kind === "death" || kind === "departure") dead = data.epoch;
      if (kind === "checkpoint" && dead !== undefined) checkpointed.add(dead);
    }
    const deaths: number[] = events.filter(({ kind }) => kind === "death").map(({ data }) => data.epoch);
    return {
      seed,
      rounds,
      crashes,
      pitKills,
      // The first may have been killed before it logged anything.
      lives: new Set(
        readFileSync(log, "utf8")
          .match(/^\d+(?= )/gm)
          ?.filter((epoch) => Number(epoch) > first),
      ).size,
      revivals: events.filter(({ kind }) => kind === "revival").length,
      checkpoints: world.checkpoints("m1").filter(({ reason }) => reason === "crash").length,
      overlaps: findOverlaps(readFileSync(log, "utf8")),
      orphans: world.processes(),
      missingCheckpoints: deaths.filter((epoch) => !checkpointed.has(epoch)),
      slowestMs,
    };
  } finally {
    await world.close();
  }
}

function lastBeatEpoch(log: string): number {
  return Number(readFileSync(log, "utf8").trimEnd().split("\n").at(-1)?.split(" ")[0]);
}

/** Two lives overlap when the older one wrote after the newer one had started. */
export function findOverlaps(text: string): string[] {
  const found: string[] = [];
  let newest = 0;
  for (const line of text.split("\n")) {
    const epoch = Number(line.split(" ")[0]);
    if (line === "" || !(epoch > 0)) continue;
    if (epoch < newest) found.push(`${epoch} wrote after ${newest} had started`);
    newest = Math.max(newest, epoch);
  }
  return found;
}
