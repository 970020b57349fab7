// Kills an agent that lives in three places at random moments, lets the pit bring it back, and looks at every scene: do
// files, flow and run agree?
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readFlowPositions } from "../../src/flow/operations/positions.ts";
import { readRunPositions } from "../../src/run/stores/positions.ts";
import { createRandom } from "../../src/testing/seeded-ids.ts";
import { bundleProgram } from "../bundle.ts";
import { createPitWorld, type PitWorld } from "../pit/pit-world.ts";

/** How far each of the three places is, in steps. */
export interface Place {
  readonly files: number;
  readonly flow: number;
  readonly run: number;
}

export interface Recovery {
  readonly seed: number;
  readonly kills: number;
  readonly scenes: readonly Place[];
  /** Scenes in which the three are further apart than one step under way. */
  readonly silent: readonly Place[];
  readonly effects: number;
  readonly twice: readonly string[];
  readonly end: Place;
  /** At an older checkpoint, after `undo`, and what the two commands said. */
  readonly restored: Place;
  readonly wanted: Place;
  readonly undone: Place;
  readonly said: string;
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
      world.run(["run", "book", "-d", "--revive", "yes", "--", process.execPath, agent, log, finish]),
    );
    for (let kill = 0; kill < kills; kill += 1) {
      const { epoch, agent } = world.life("book");
      const before = lines(log).length;
      // Most lives get some work done; some are killed while they wake up.
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

    const scenes = [];
    const crashes = world.checkpoints("book").filter(({ reason }) => reason === "crash");
    for (const { checkpoint_id: id } of crashes) {
      const to = join(world.directory, `scene-${scenes.length}`);
      expectDone(world.run(["restore", "book", id, "--to", to]));
      scenes.push({ id, place: lookAt(to) });
    }
    const end = lookAt(cell);
    const older = scenes[Math.floor(scenes.length / 2)]!;
    const back = expectDone(world.run(["restore", "book", older.id]));
    const restored = lookAt(cell);
    const forth = expectDone(world.run(["undo", "book"]));
    const effects = lines(log);
    return {
      seed,
      kills,
      scenes: scenes.map(({ place }) => place),
      silent: scenes.map(({ place }) => place).filter((place) => !agrees(place)),
      effects: effects.length,
      twice: effects.filter((effect, i) => effects.indexOf(effect) !== i),
      end,
      restored,
      wanted: older.place,
      undone: lookAt(cell),
      said: `${back}${forth}`,
    };
  } catch (error) {
    // Whoever reads this wants to know what the agent said, and how to see it again.
    throw new Error(`seed ${seed}, ${world.state("book")}: ${world.log("book").slice(-2000)}`, {
      cause: error,
    });
  } finally {
    await world.close();
  }
}

/**
 * A step begins in the transcript (the model's call), then in the files, then in the flow: between two steps all three
 * are equal, and within one nobody is more than that step apart. The run's record says which one is under way.
 */
function agrees({ files, flow, run }: Place): boolean {
  return flow <= files && files <= run && run <= flow + 1;
}

function lookAt(cell: string): Place {
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
