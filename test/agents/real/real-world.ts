// One real CLI in a home of its own, started through the built `lazarus`, with the mock model on the other side.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createPitWorld, end, type PitWorld } from "../../pit/pit-world.ts";
import { countEffects } from "../fake/install.ts";
import { type MockModel, startMockModel } from "../mock-model/server.ts";
import { AGENTS } from "./agents.ts";

export const STEPS = 6;

export interface RealWorld extends AsyncDisposable {
  readonly world: PitWorld;
  readonly model: MockModel;
  readonly work: string;
  run(...words: readonly string[]): { exit: number | null; stdout: string; stderr: string };
  /** Starts the agent, detached and with `--revive yes`. */
  start(): void;
  effects(): Record<string, number>;
  chapters(): string[];
  /** Kills the recorded process; what it left is the pit's to find. */
  kill(): void;
  untilState(...states: readonly string[]): Promise<string>;
}

export const MISSION = "book";

export async function createRealWorld(name: string, bin: string, hold: number): Promise<RealWorld> {
  const agent = AGENTS[name]!;
  const model = await startMockModel({ steps: STEPS, hold });
  const world = createPitWorld();
  const work = join(world.directory, "work");
  mkdirSync(work);
  for (const [path, text] of Object.entries(agent.files(model.url))) {
    const file = join(world.directory, "user", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const env = { ...agent.env(model.url), PATH: `${bin}:${dirname(process.execPath)}:${world.env.PATH}` };
  const run: RealWorld["run"] = (...words) => world.run(words, { env });
  if (agent.needsInstall && run("install", name).exit !== 0)
    throw new Error(`lazarus install ${name} failed`);
  return {
    world,
    model,
    work,
    run,
    start() {
      const { exit, stderr } = run(
        "run",
        MISSION,
        "-d",
        "--revive",
        "yes",
        "--in",
        work,
        "--",
        name,
        ...agent.args("Write the book"),
      );
      if (exit !== 0) throw new Error(`lazarus run exited ${exit}: ${stderr}`);
    },
    effects: () => countEffects(join(work, "outbox.log")),
    chapters: () =>
      readdirSync(work).filter(
        (file) =>
          /^chapter-\d\.md$/.test(file) && readFileSync(join(work, file), "utf8") === `chapter ${file[8]}\n`,
      ),
    kill: () => end(world.life(MISSION).agent.pid),
    async untilState(...states) {
      await world.until(`${name} to be ${states.join(" or ")}: ${world.log(MISSION).slice(-2000)}`, () =>
        states.includes(world.state(MISSION)),
      );
      return world.state(MISSION);
    },
    async [Symbol.asyncDispose]() {
      await world.close();
      await model[Symbol.asyncDispose]();
    },
  };
}
