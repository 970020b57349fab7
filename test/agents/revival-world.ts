// Missions with fake agents, supervised step by step in this process: no pit, no waiting for a backoff. The clock can be
// moved forward; what a test waits for is the end of a process or a file.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { isKeeperAlive, readLife } from "../../src/cell/life.ts";
import { type MissionId, parseMissionId } from "../../src/cell/mission-id.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { handleExit } from "../../src/pit/death/handle-exit.ts";
import { explain, renderWhy } from "../../src/pit/death/why.ts";
import type { AgentSpec, MissionRecord } from "../../src/pit/record/record.ts";
import { readRecord } from "../../src/pit/record/store.ts";
import { reviveAsDecided } from "../../src/pit/start/revive.ts";
import { type StartOptions, startMission } from "../../src/pit/start-mission.ts";
import { viewMission } from "../../src/pit/view.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createWorld, LAUNCHER } from "../cli/hermetic.ts";
import { findProcessesOf, killIfRunning } from "../pit/pit-world.ts";
import { HEADLESS } from "./fake/headless.ts";
import { countEffects, installFakes, installHooks, readRequests } from "./fake/install.ts";

/** A mission with a fake agent that writes a book. */
export interface Book {
  readonly mission: MissionId;
  readonly traces: string;
  readonly cell: string;
  start(options?: StartOptions & Partial<Pick<AgentSpec, "command" | "mcp">>): Promise<void>;
  /** Waits until the agent is at FAKE_PAUSE, and returns the process that is there. */
  paused(): Promise<number>;
  /** Waits until the life has ended, handles its end, and returns the record with the decision. */
  ended(): Promise<MissionRecord>;
  /** Moves the clock to when the revival is due, and starts the next life. */
  revive(): Promise<void>;
  /** Ends lives and revives until nothing is due. */
  finish(): Promise<MissionRecord>;
  record(): MissionRecord;
  why(): string;
  /** How often each step had its effect. */
  effects(): Record<string, number>;
  /** Requests to the model, as the number of the next chapter. */
  asked(): string[];
  lastPrompt(): string;
}

export interface RevivalWorld extends AsyncDisposable {
  readonly context: PitContext;
  readonly directory: string;
  readonly user: string;
  readonly bin: string;
  forward(ms: number): void;
  /** A program of this name in its own directory. */
  install(directory: string, name: string, script: string): void;
  book(agent: string, mission: string, env?: Readonly<Record<string, string>>): Book;
}

/** Hooks start two processes per step, so there are few. */
const STEPS = "3";

export function createRevivalWorld(config: object = {}): RevivalWorld {
  const world = createWorld();
  world.write("home/config.json", JSON.stringify(config));
  const bin = join(world.directory, "agents");
  let shiftMs = 0;
  const clock = { ...systemMachine.clock, nowMs: () => systemMachine.clock.nowMs() + shiftMs };
  const environment = { ...world.env, PATH: `${bin}:${world.env.PATH}` };
  const context = openPitContext({
    machine: { ...systemMachine, clock },
    effective: loadConfig({ env: environment, cwd: world.cwd, isRoot: false }),
    version: "test",
    environment,
    cwd: world.cwd,
    program: [process.execPath, LAUNCHER],
    log() {},
    warn() {},
  });
  const until = async (test: () => boolean) => {
    while (!test()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const book: RevivalWorld["book"] = (agent, name, env = {}) => {
    const mission = parseMissionId(name);
    const traces = join(world.directory, "traces", name);
    mkdirSync(traces, { recursive: true });
    installFakes(bin, agent);
    installHooks(agent, world.env.HOME!, [process.execPath, LAUNCHER]);
    const { config: paths } = context;
    const record = () => readRecord(paths, mission)!;
    const isAlive = () => isKeeperAlive(systemMachine.processes, paths, mission);
    const cell = join(world.missions, name);
    const self: Book = {
      mission,
      traces,
      cell,
      async start({ command, mcp, ...options } = {}) {
        const spec = {
          mission,
          agent,
          command: command ?? [agent, ...HEADLESS[agent]!.args("Write the book")],
          cwd: null,
          env: { ...HEADLESS[agent]!.key, FAKE_DIRECTORY: traces, FAKE_STEPS: STEPS, ...env },
          revive: "yes",
          substitute: null,
          stall_seconds: null,
          ...(mcp && { mcp }),
        } as const;
        await startMission(context, spec, options);
      },
      async paused() {
        const file = join(traces, "paused");
        await until(() => {
          if (!isAlive()) throw new Error(`the agent ended: ${readFileSync(join(cell, "logs/agent.log"))}`);
          return existsSync(file) && readFileSync(file, "utf8") !== "";
        });
        return Number(readFileSync(file, "utf8"));
      },
      async ended() {
        await until(() => !isAlive());
        using _ = await context.lockMission(mission, "test");
        const exit = await handleExit(context, record());
        if (exit.state !== "handled") throw new Error(`the end of ${mission} is ${exit.state}`);
        return exit.record;
      },
      async revive() {
        using lock = await context.lockMission(mission, "test");
        const { decision } = record();
        shiftMs += Math.max(0, (decision?.at_ms ?? 0) - clock.nowMs());
        const exit = await handleExit(context, record());
        if (exit.state !== "handled" || exit.decision.at_ms === null)
          throw new Error(`${mission} is not revived: ${JSON.stringify(exit.record?.decision)}`);
        await reviveAsDecided(context, exit, lock);
      },
      async finish() {
        for (;;) {
          const ended = await self.ended();
          if (ended.decision?.at_ms == null) return ended;
          await self.revive();
        }
      },
      record,
      why: () => renderWhy(explain(viewMission(context, mission)!, { nowMs: clock.nowMs(), pitRuns: false })),
      effects: () => countEffects(join(cell, "worktree", "outbox.log")),
      asked: () => readRequests(traces).map(({ next }) => next),
      lastPrompt: () => readRequests(traces).at(-1)?.prompt ?? "",
    };
    return self;
  };
  return {
    context,
    directory: world.directory,
    user: world.env.HOME!,
    bin,
    forward(ms) {
      shiftMs += ms;
    },
    install(directory, name, script) {
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    },
    book,
    async [Symbol.asyncDispose]() {
      await until(() => {
        const running = findProcessesOf(world.directory);
        for (const pid of running) killIfRunning(pid);
        return running.length === 0;
      });
      context[Symbol.dispose]();
      world[Symbol.dispose]();
    },
  };
}

/** The process that the keeper recorded as the agent. */
export function recordedPid({ context }: RevivalWorld, mission: MissionId): number {
  return readLife(context.config, mission)!.agent.pid;
}
