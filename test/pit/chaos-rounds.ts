// Hostile agents (chaos-agent.mjs) share a pit with a harmless one, the witness, while agents, keepers and the pit are
// killed at random. Counts violations: lives never overlap, every death has its checkpoint, no agent grants itself
// anything, and the witness is revived in spite of the others.
import { type ChildProcess, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "../../src/testing/seeded-ids.ts";
import {
  createPitWorld,
  findProcessesOf,
  isCheckpointProcess,
  killIfRunning,
  type PitWorld,
} from "./pit-world.ts";

export interface ChaosTally {
  readonly seed: number;
  readonly rounds: number;
  readonly lives: number;
  /** Older lives that wrote after a newer one had started. */
  readonly overlaps: readonly string[];
  readonly missingCheckpoints: readonly string[];
  readonly hijacked: boolean;
  /** Processes left after every mission was stopped. */
  readonly leftovers: number;
  /** Slowest revival of the witness. */
  readonly slowestMs: number;
  /** The pit's resident size: medians of the first and the last third of the rounds. */
  readonly pitMib: { readonly first: number; readonly last: number };
  /** Why the disk was not filled, if so. */
  readonly notFilled: string | undefined;
}

const HOSTILE = ["h1", "h2", "h3"];
const WITNESS = "witness";
const AGENT = join(import.meta.dirname, "chaos-agent.mjs");
/** Vaults and logs grow by about half a megabyte per round. */
const DISK_MB = { first: 96, perRound: 2 };
const SETTINGS = {
  backoff_seconds: [0],
  max_revivals_per_hour: 100_000,
  alike_crashes_per_step: 100_000,
  grace_seconds: 0.5,
  leftover_grace_seconds: 0.2,
  log_limit_bytes: 4 << 20,
};

export async function chaosRounds(rounds: number, seed: number): Promise<ChaosTally> {
  const world = createPitWorld();
  const notFilled = mountSmallDisk(world.home, DISK_MB.first + rounds * DISK_MB.perRound);
  try {
    return await runRounds(world, rounds, seed, notFilled);
  } catch (error) {
    const { stdout } = world.run(["status"]);
    const why = world.run(["why", WITNESS]).stdout;
    const disk = spawnSync("df", ["-h", world.home], { encoding: "utf8" }).stdout;
    throw new Error(`${error instanceof Error ? error.message : error}\n${stdout}${why}${disk}`, {
      cause: error,
    });
  } finally {
    // Lazily: the processes that are still there have files open.
    if (notFilled === undefined) spawnSync("umount", ["-l", world.home]);
    await world.close();
  }
}

/** So that an agent can fill the disk of this home alone. Returns why it cannot. */
function mountSmallDisk(path: string, megabytes: number): string | undefined {
  if (process.getuid?.() !== 0) return "only root can mount a small disk";
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "none", path], {
    encoding: "utf8",
  });
  return status === 0 ? undefined : `cannot mount a small disk: ${stderr.trim()}`;
}

async function runRounds(
  world: PitWorld,
  rounds: number,
  seed: number,
  notFilled: string | undefined,
): Promise<ChaosTally> {
  const random = createRandom(seed);
  const log = join(world.directory, "lives.log");
  const filler = join(world.home, "filler");
  writeFileSync(log, "");
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: SETTINGS }));
  let pit = await world.openPit();
  startAgents(world, log, seed, notFilled === undefined ? filler : undefined);
  const sizes: number[] = [];
  let slowestMs = 0;
  for (let round = 0; round < rounds; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, random.int(0, 200)));
    sizes.push(residentMib(pit));
    if (random.chance(0.2)) pit = await restartPit(world, pit);
    for (const mission of HOSTILE) if (random.chance(0.5)) killLife(world, mission, random.chance(0.3));
    const { epoch } = world.life(WITNESS);
    const killedMs = performance.now();
    killLife(world, WITNESS, random.chance(0.2));
    // Checkpoints need space; killing and alerting do not.
    if (existsSync(filler)) rmSync(filler, { force: true });
    await world.until(`a life of the witness after ${epoch} (seed ${seed}, round ${round})`, () => {
      rmSync(filler, { force: true });
      return world.life(WITNESS).epoch > epoch && existsSync(`/proc/${world.life(WITNESS).agent.pid}`);
    });
    slowestMs = Math.max(slowestMs, performance.now() - killedMs);
  }
  await stopAll(world, pit, filler);
  const text = readFileSync(log, "utf8");
  const third = Math.ceil(rounds / 3);
  return {
    seed,
    rounds,
    lives: new Set(text.match(/^\S+ \d+/gm)).size,
    overlaps: [...HOSTILE, WITNESS].flatMap((mission) => findOverlaps(text, mission)),
    missingCheckpoints: [...HOSTILE, WITNESS].flatMap((mission) => findMissingCheckpoints(world, mission)),
    hijacked: text.includes("hijacked"),
    leftovers: findProcessesOf(world.directory).filter((pid) => !isCheckpointProcess(pid)).length,
    slowestMs: Math.round(slowestMs),
    pitMib: { first: median(sizes.slice(0, third)), last: median(sizes.slice(-third)) },
    notFilled,
  };
}

function startAgents(world: PitWorld, log: string, seed: number, filler: string | undefined): void {
  const run = (mission: string, options: string[], command: string[]) => {
    if (filler !== undefined) rmSync(filler, { force: true });
    const { exit, stderr } = world.run(["run", mission, "-d", ...options, "--", ...command]);
    if (exit !== 0) throw new Error(stderr);
  };
  const witness = 'while :; do echo "$LAZARUS_MISSION $LAZARUS_EPOCH $$" >> "$0"; sleep 0.1; done';
  run(WITNESS, ["--revive", "yes"], ["sh", "-c", witness, log]);
  const fill = filler === undefined ? [] : ["--env", `CHAOS_FILLER=${filler}`];
  for (const [n, mission] of HOSTILE.entries())
    run(mission, ["--revive", "yes", ...fill], [process.execPath, AGENT, log, String(seed + 100 * n)]);
}

async function restartPit(world: PitWorld, pit: ChildProcess): Promise<ChildProcess> {
  pit.kill("SIGKILL");
  await world.until("the pit's end", () => pit.signalCode !== null || pit.exitCode !== null);
  rmSync(join(world.home, "filler"), { force: true });
  return world.openPit();
}

function killLife(world: PitWorld, mission: string, keeperToo: boolean): void {
  const { agent, keeper } = world.life(mission);
  if (keeperToo) killIfRunning(keeper.pid);
  killIfRunning(agent.pid);
}

async function stopAll(world: PitWorld, pit: ChildProcess, filler: string): Promise<void> {
  for (const mission of [...HOSTILE, WITNESS]) {
    rmSync(filler, { force: true });
    const { exit, stderr } = world.run(["stop", mission, "--grace", "0"]);
    if (exit !== 0 && exit !== 5) throw new Error(`stop ${mission}: ${stderr}`);
  }
  pit.kill("SIGTERM");
  await world.until("the pit's exit", () => pit.exitCode !== null || pit.signalCode !== null);
}

function residentMib(pit: ChildProcess): number {
  try {
    const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pit.pid}/status`, "latin1"))?.[1];
    return Math.round(Number(kb ?? 0) / 1024);
  } catch {
    return 0;
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function findOverlaps(text: string, mission: string): string[] {
  const found = new Set<string>();
  let newest = 0;
  for (const line of text.split("\n")) {
    const [of, epoch, , name] = line.split(" ");
    if (of !== mission) continue;
    if (Number(epoch) < newest) found.add(`${mission}: ${name} of life ${epoch} wrote in life ${newest}`);
    newest = Math.max(newest, Number(epoch));
  }
  return [...found];
}

/** Every death is followed by a checkpoint before the next life. */
function findMissingCheckpoints(world: PitWorld, mission: string): string[] {
  const { stdout } = world.run(["events", mission, "--json", "-n", "0"]);
  const missing: string[] = [];
  let dead: number | undefined;
  for (const line of stdout.trim().split("\n")) {
    const { kind, data } = JSON.parse(line);
    if (kind === "death" || kind === "departure") dead = data.epoch;
    else if (kind === "checkpoint") dead = undefined;
    else if (kind === "revival" && dead !== undefined) {
      missing.push(`${mission}: life ${dead}`);
      dead = undefined;
    }
  }
  return missing;
}
