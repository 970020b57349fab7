// A home with agents: the real command line, a real pit in its own process, and the list of all processes that were
// started, so that a test can check that none is left. Kills what it started, by pid.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { removeCgroup } from "../../src/pit/processes/cgroup.ts";
import { viewMission } from "../../src/pit/view.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openVault } from "../../src/snapshot/vault/vault.ts";
import { createWorld, LAUNCHER, type World } from "../cli/hermetic.ts";

interface LifeProcess {
  pid: number;
  startTime: string;
}

export interface PitWorld extends World {
  /** Starts a pit and waits until it runs. */
  openPit(): Promise<ChildProcess>;
  life(mission: string): { epoch: number; keeper: LifeProcess; agent: LifeProcess };
  // biome-ignore lint/suspicious/noExplicitAny: tests access it as plain JSON.
  record(mission: string): Record<string, any>;
  state(mission: string): string;
  log(mission: string): string;
  checkpoints(mission: string): { reason: string; checkpoint_id: string }[];
  /** Running processes of this home, by environment or command line, without those in which a pit takes checkpoints. */
  processes(): number[];
  /** As in ps: S sleeping, T stopped. */
  processState(pid: number): string | undefined;
  /** Waits until `test` returns or resolves to something truthy. */
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
      let output = "";
      pit.stderr!.on("data", (chunk) => {
        output += chunk;
      });
      await pitWorld.until("the pit to start", () => {
        if (pit.exitCode !== null) throw new Error(`the pit ended with ${pit.exitCode}: ${output}`);
        return output.includes("pit started for");
      });
      return pit;
    },
    life: (mission) => read(agents(mission, "life.json")),
    record: (mission) => read(agents(mission, "record.json")),
    state(mission) {
      // In this process: a waiting test would start fifty commands a second otherwise.
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
    processes: () => findProcessesOf(world.home).filter((pid) => !isCheckpointProcess(pid)),
    processState: (pid) => /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1],
    async until(what, test, waitMs = 300_000) {
      const deadline = performance.now() + waitMs;
      for (;;) {
        if (await quietly(test)) return;
        if (performance.now() > deadline) {
          await test();
          throw new Error(`timed out after ${waitMs} ms waiting for ${what}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async close() {
      for (const pit of pits) pit.kill("SIGKILL");
      // Until none is left: one may have forked since, and none may write into the directory that is removed.
      await pitWorld.until("the end of every process", () => {
        const running = findProcessesOf(world.directory);
        for (const pid of running) killIfRunning(pid);
        // Threads of a pit may outlive its entry in /proc; its exit event comes when they are gone.
        return running.length === 0 && pits.size === 0;
      });
      removeGroups(join(world.home, "run", "agents"));
      world[Symbol.dispose]();
    },
  };
  return pitWorld;
}

/** Kills a process; it may have ended in the meantime. */
export function killIfRunning(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Keepers that were killed have left their control groups behind. */
function removeGroups(agents: string): void {
  for (const mission of existsSync(agents) ? readdirSync(agents) : []) {
    try {
      const { life } = JSON.parse(readFileSync(join(agents, mission, "record.json"), "utf8"));
      if (life.cgroup) removeCgroup(life.cgroup);
    } catch {
      // The test has damaged the record.
    }
  }
}

/** While waiting, errors mean "not yet"; the last one is thrown at the timeout. */
async function quietly(test: () => unknown): Promise<unknown> {
  try {
    return await test();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("the pit ended")) throw error;
    return false;
  }
}

/** It waits for more work for a while, and ends with its pit. */
export function isCheckpointProcess(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("checkpoint-process");
  } catch {
    return true;
  }
}

/** Running processes whose LAZARUS_HOME or command line names this directory, without the test's own. */
export function findProcessesOf(home: string): number[] {
  const isHome = (entry: string) =>
    entry === `LAZARUS_HOME=${home}` || entry.startsWith(`LAZARUS_HOME=${home}/`);
  const found: number[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0) || pid === process.pid) continue;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      // A process of the kernel, or one that has ended.
      if (line === "") continue;
      if (!line.includes(home)) {
        const env = readFileSync(`/proc/${pid}/environ`, "latin1");
        if (!env.includes(home) || !env.split("\0").some(isHome)) continue;
      }
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      if (!/\) [ZX] /.test(stat)) found.push(pid);
    } catch {}
  }
  return found;
}
