// One real CLI in its own home, started through the built `lazarus`, with the mock model on the other side.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { processTree } from "../../../src/pit/processes/process-table.ts";
import { createPitWorld, killIfRunning, type PitWorld } from "../../pit/pit-world.ts";
import { countEffects } from "../fake/install.ts";
import { type MockModel, startMockModel } from "../mock-model/server.ts";
import { AGENTS } from "./agents.ts";

export const STEPS = 6;

export interface RealWorld extends AsyncDisposable {
  readonly world: PitWorld;
  readonly model: MockModel;
  readonly work: string;
  /** The agent's. */
  readonly env: Record<string, string | undefined>;
  run(...words: readonly string[]): { exit: number | null; stdout: string; stderr: string };
  /** Starts the agent, detached and with `--revive yes`; with other arguments for it, if there are any. */
  start(args?: readonly string[], program?: string): void;
  why(): string;
  effects(): Record<string, number>;
  chapters(): string[];
  /** Kills the recorded process; the pit has to find what it left. */
  kill(): void;
  /** Kills all processes of the life but its keeper. */
  killAll(): void;
  untilState(...states: readonly string[]): Promise<string>;
  /** Where the agents keep their conversations; what is there, by path. */
  transcripts(): Record<string, string>;
}

/** Below the home directory. */
export const TRANSCRIPTS = [
  ...[".claude/projects", ".codex/sessions", ".gemini/tmp", ".qwen/projects", ".pi/agent/sessions"],
  ".copilot/session-state",
];

export const MISSION = "book";

/** Some CLIs retry a refused request for minutes before they give up. */
const STATE_WAIT_MS = 10 * 60_000;

/** Only a command of the user ends these states. */
const FINAL_STATES = ["finished", "asking", "tombstone"];

export interface RealOptions {
  /** The directory of the program. */
  readonly bin: string;
  /** Seconds that a step takes. */
  readonly hold?: number;
  /** How long the model takes to answer. */
  readonly thinkMs?: number;
  /** As a command without an adapter: without hooks. */
  readonly noAdapter?: boolean;
  /** With the tools of our MCP server. */
  readonly mcp?: boolean;
  /** Without the key for its model. */
  readonly noKey?: boolean;
}

export async function createRealWorld(
  name: string,
  { bin, hold = 0.3, thinkMs = 0, noAdapter = false, mcp = false, noKey = false }: RealOptions,
): Promise<RealWorld> {
  const agent = AGENTS[name]!;
  const model = await startMockModel({ steps: STEPS, hold, thinkMs });
  const world = createPitWorld();
  const work = join(world.directory, "work");
  mkdirSync(work);
  for (const [path, text] of Object.entries(agent.files(model.url, noKey ? undefined : "dummy", work))) {
    const file = join(world.directory, "user", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const given = noKey ? (agent.keyless ?? withoutKeys(agent.env(model.url))) : agent.env(model.url);
  const env = {
    ...given,
    // As with its adapter.
    ...(noAdapter && name === "gemini" && { GEMINI_CLI_NO_RELAUNCH: "true" }),
    PATH: `${bin}:${dirname(process.execPath)}:${world.env.PATH}`,
  };
  const run: RealWorld["run"] = (...words) => world.run(words, { env });
  if (agent.needsInstall && !noAdapter && run("install", name).exit !== 0)
    throw new Error(`lazarus install ${name} failed`);
  return {
    world,
    model,
    work,
    env: { ...world.env, ...env },
    run,
    start(args = agent.args("Write the book"), program = name) {
      const { exit, stderr } = run(
        "run",
        MISSION,
        "-d",
        "--revive",
        "yes",
        "--in",
        work,
        ...(noAdapter ? ["--no-adapter"] : []),
        ...(mcp ? ["--mcp"] : []),
        "--",
        program,
        ...args,
      );
      if (exit !== 0) throw new Error(`lazarus run exited ${exit}: ${stderr}`);
    },
    why: () => run("why", MISSION).stdout,
    effects: () => countEffects(join(work, "outbox.log")),
    chapters: () =>
      readdirSync(work).filter(
        (file) =>
          /^chapter-\d\.md$/.test(file) && readFileSync(join(work, file), "utf8") === `chapter ${file[8]}\n`,
      ),
    kill: () => killIfRunning(world.life(MISSION).agent.pid),
    killAll() {
      for (const pid of processTree(world.life(MISSION).agent.pid)) killIfRunning(pid);
    },
    async untilState(...states) {
      const what = `${name} to be ${states.join(" or ")}`;
      const awaited = [...states, ...FINAL_STATES];
      await world.until(what, () => awaited.includes(world.state(MISSION)), STATE_WAIT_MS);
      const state = world.state(MISSION);
      if (!states.includes(state)) throw new Error(`${what}, but: ${run("why", MISSION).stdout}`);
      return state;
    },
    transcripts() {
      const roots = TRANSCRIPTS.map((path) => join(world.directory, "user", path)).filter(existsSync);
      const files = roots.flatMap((root) =>
        readdirSync(root, { recursive: true, encoding: "utf8" }).map((file) => join(root, file)),
      );
      const lines = files.filter((path) => path.endsWith(".jsonl"));
      return Object.fromEntries(lines.map((path) => [path, readFileSync(path, "utf8")]));
    },
    async [Symbol.asyncDispose]() {
      await world.close();
      await model[Symbol.asyncDispose]();
    },
  };
}

function withoutKeys(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.endsWith("API_KEY")));
}
