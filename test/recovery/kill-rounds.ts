// Kills an agent with files, a flow and a run at random moments, lets the pit revive it, and checks in every crash
// checkpoint that the three agree.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readFlowPositions } from "../../src/flow/operations/positions.ts";
import { readRunPositions } from "../../src/run/store/positions.ts";
import { createRandom } from "../../src/testing/seeded-ids.ts";
import { bundleProgram } from "../bundle.ts";
import { createPitWorld, type PitWorld } from "../pit/pit-world.ts";

/** How far files, flow and run are, in steps. */
export interface Positions {
  readonly files: number;
  readonly flow: number;
  readonly run: number;
}

export interface Recovery {
  readonly seed: number;
  readonly kills: number;
  readonly crashStates: readonly Positions[];
  /** Crash states in which the three are more than one unfinished step apart. */
  readonly disagreements: readonly Positions[];
  readonly effects: number;
  readonly repeated: readonly string[];
  readonly end: Positions;
  /** After restoring an older checkpoint, as that checkpoint had it, after `undo`, and the output of both commands. */
  readonly restored: Positions;
  readonly wanted: Positions;
  readonly undone: Positions;
  readonly output: string;
}

const AGENT = join(import.meta.dirname, "agent.ts");

export async function killAndCompare(kills: number, seed: number): Promise<Recovery> {
  const agent = await bundleProgram(AGENT);
  const world = createPitWorld();
  const random = createRandom(seed);
  const log = join(world.directory, "effects.log");
  const finish = join(world.directory, "finish");
  const cell = join(world.missions, "book");
  writeFileSync(log, "");
  writeFileSync(
    join(world.home, "config.json"),
    JSON.stringify({
      pit: { backoff_seconds: [0], max_revivals_per_hour: 100_000, alike_crashes_per_step: 100_000 },
    }),
  );
  try {
    const pit = await world.openPit();
    expectDone(
      await world.call(["run", "book", "-d", "--revive", "yes", "--", process.execPath, agent, log, finish]),
    );
    for (let kill = 0; kill < kills; kill += 1) {
      const { epoch, agent } = world.life("book");
      const before = lines(log).length;
      // Most lives do some work; some are killed while they start.
      if (random.int(0, 4) > 0) await world.until("work", () => lines(log).length > before);
      await new Promise((resolve) => setTimeout(resolve, random.int(0, 60)));
      process.kill(agent.pid, "SIGKILL");
      await world.until("the next life", () => world.life("book").epoch > epoch);
    }
    await world.until("work of the last life", () => lines(log).length > 0);
    writeFileSync(finish, "");
    await world.until("the end", () => world.state("book") === "finished");
    pit.kill("SIGTERM");
    await world.until("the pit's end", () => pit.exitCode !== null);

    const crashStates = [];
    const crashes = world.checkpoints("book").filter(({ reason }) => reason === "crash");
    for (const { checkpoint_id: id } of crashes) {
      const to = join(world.directory, `crash-${crashStates.length}`);
      expectDone(await world.call(["restore", "book", id, "--to", to]));
      crashStates.push({ id, positions: readPositions(to) });
    }
    const end = readPositions(cell);
    const older = crashStates[Math.floor(crashStates.length / 2)]!;
    const restoreOutput = expectDone(await world.call(["restore", "book", older.id]));
    const restored = readPositions(cell);
    const undoOutput = expectDone(await world.call(["undo", "book"]));
    const effects = lines(log);
    return {
      seed,
      kills,
      crashStates: crashStates.map(({ positions }) => positions),
      disagreements: crashStates.map(({ positions }) => positions).filter((positions) => !agrees(positions)),
      effects: effects.length,
      repeated: effects.filter((effect, i) => effects.indexOf(effect) !== i),
      end,
      restored,
      wanted: older.positions,
      undone: readPositions(cell),
      output: `${restoreOutput}${undoOutput}`,
    };
  } catch (error) {
    // Includes the agent's log and the seed to replay.
    throw new Error(`seed ${seed}, ${world.state("book")}: ${world.log("book").slice(-2000)}`, {
      cause: error,
    });
  } finally {
    await world.close();
  }
}

/**
 * A step first shows in the run (the model's call), then in the files, then in the flow. Between two steps all three are
 * equal, and within a step they differ by at most one. The run's ledger names the unfinished step.
 */
function agrees({ files, flow, run }: Positions): boolean {
  return flow <= files && files <= run && run <= flow + 1;
}

function readPositions(cell: string): Positions {
  const worktree = join(cell, "worktree");
  const [flow] = readFlowPositions(cell);
  const [run] = readRunPositions(cell);
  return {
    files: existsSync(worktree)
      ? readdirSync(worktree).filter((name) => name.startsWith("chapter-")).length
      : 0,
    flow: flow?.completedSteps ?? 0,
    run: run?.step ?? 0,
  };
}

function lines(file: string): string[] {
  return readFileSync(file, "utf8").split("\n").filter(Boolean);
}

function expectDone({ exit, stdout, stderr }: ReturnType<PitWorld["run"]>): string {
  if (exit !== 0) throw new Error(`exit ${exit}: ${stderr}`);
  return `${stdout}${stderr}`;
}
