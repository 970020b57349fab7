// A world with agents in it: the real command line, a real pit as a process of its own, and a list of every process that
// was started, so that a test can say "nothing is left". Ends what it started, by pid.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { viewMission } from "../../src/pit/view.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openVault } from "../../src/snapshot/vault/vault.ts";
import { createWorld, LAUNCHER, type World } from "../cli/hermetic.ts";

export interface PitWorld extends World {
  /** Starts a pit and waits until it is open. */
  openPit(): Promise<ChildProcess>;
  life(mission: string): { epoch: number; keeper: { pid: number }; agent: { pid: number } };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as into JSON.
  record(mission: string): Record<string, any>;
  state(mission: string): string;
  log(mission: string): string;
  checkpoints(mission: string): { reason: string; checkpoint_id: string }[];
  /** Live processes that belong to a cell of this world, by environment or command line. */
  processes(): number[];
  /** The kernel's word for what a process does: S sleeps, T is stopped. */
  processState(pid: number): string | undefined;
  until(what: string, test: () => unknown, waitMs?: number): Promise<void>;
  close(): Promise<void>;
}

export function createPitWorld(): PitWorld {
  const world = createWorld();
  const pits = new Set<ChildProcess>();
  const agents = (mission: string, file: string) => join(world.home, "run", "agents", mission, file);
  const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  const pitWorld: PitWorld = {
    ...world,
    async openPit() {
      const pit = spawn(process.execPath, [LAUNCHER, "pit"], {
        cwd: world.cwd,
        env: world.env,
        stdio: ["ignore", "ignore", "pipe"],
      });
      pits.add(pit);
      pit.once("exit", () => pits.delete(pit));
      let said = "";
      pit.stderr!.on("data", (chunk) => {
        said += chunk;
      });
      await pitWorld.until("a pit that opens", () => {
        if (pit.exitCode !== null) throw new Error(`the pit ended with ${pit.exitCode}: ${said}`);
        return said.includes("pit started for");
      });
      return pit;
    },
    life: (mission) => read(agents(mission, "life.json")),
    record: (mission) => read(agents(mission, "record.json")),
    state(mission) {
      // In this process: a test that waits for a state would start a command fifty times a second.
      const { config } = loadConfig({ env: world.env, cwd: world.cwd, isRoot: false });
      return viewMission({ machine: systemMachine, config }, parseMissionId(mission))?.state ?? "absent";
    },
    log(mission) {
      const path = join(world.missions, mission, "logs", "agent.log");
      return existsSync(path) ? readFileSync(path, "utf8") : "";
    },
    checkpoints: (mission) =>
      openVault(systemMachine, join(world.home, "vault"), mission)
        .list()
        .map(({ id, reason }) => ({ checkpoint_id: id, reason })),
    processes: () => livingIn(world.home),
    processState: (pid) => /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1],
    async until(what, test, waitMs = 300_000) {
      const deadline = performance.now() + waitMs;
      for (;;) {
        if (quietly(test)) return;
        if (performance.now() > deadline) {
          test();
          throw new Error(`waited ${waitMs} ms in vain for ${what}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async close() {
      for (const pit of pits) pit.kill("SIGKILL");
      // Until none is left: one may have forked since it was looked for, and none may write into what is removed.
      await pitWorld.until("the end of every process", () => {
        const living = livingIn(world.directory);
        for (const pid of living) end(pid);
        // A pit's threads may outlive what /proc shows of it; its exit is told when they are gone, too.
        return living.length === 0 && pits.size === 0;
      });
      world[Symbol.dispose]();
    },
  };
  return pitWorld;
}

/** Ends a process; one that went by itself in the meantime, say because another one's end took it along, has ended too. */
export function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** A wait swallows what is not there yet; an error that stays is thrown at the end. */
function quietly(test: () => unknown): unknown {
  try {
    return test();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("the pit ended")) throw error;
    return false;
  }
}

/** Every live process that has its home here or below, or names it when called; the test's own is not among them. */
export function livingIn(home: string): number[] {
  const isHome = (entry: string) =>
    entry === `LAZARUS_HOME=${home}` || entry.startsWith(`LAZARUS_HOME=${home}/`);
  const found: number[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0) || pid === process.pid) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      if (/\) [ZX] /.test(stat)) continue;
      const line = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      const env = readFileSync(`/proc/${pid}/environ`, "latin1");
      if (line.includes(home) || env.split("\0").some(isHome)) found.push(pid);
    } catch {}
  }
  return found;
}
