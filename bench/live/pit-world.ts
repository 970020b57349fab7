// A pit with protected missions in its own home: agents that sleep while the bench works in their cells.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { addressPath, tokenPath } from "../../src/http/caller.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { startMission } from "../../src/pit/start-mission.ts";
import { stopMission } from "../../src/pit/stop.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openVault } from "../../src/snapshot/vault/vault.ts";
import { pause } from "./figures.ts";

const WAIT_MS = 300_000;

export interface PitWorld extends AsyncDisposable {
  readonly home: string;
  readonly env: Record<string, string>;
  readonly pid: number;
  cell(mission: string): string;
  /** Starts an agent that sleeps. Its cell must exist. */
  protect(mission: string): Promise<void>;
  /** Waits until the pit has noticed and saved a change: from then on the mission is watched. */
  watched(mission: string): Promise<void>;
  /** One of the pit's metrics. */
  metric(name: string): Promise<number>;
}

/** `launcher` is the program that is measured. */
export async function openPitWorld(
  home: string,
  launcher: string,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<PitWorld> {
  mkdirSync(home, { recursive: true });
  const pit = { checkpoint_at_shutdown: false, ...settings };
  writeFileSync(join(home, "config.json"), JSON.stringify({ pit, retention: { auto: false } }));
  const env = { HOME: home, LAZARUS_HOME: home, PATH: process.env.PATH ?? "" };
  const context = openPitContext({
    machine: systemMachine,
    effective: loadConfig({ env, cwd: home, isRoot: false }),
    version: "bench",
    environment: env,
    cwd: home,
    log: () => {},
    warn: (line) => process.stderr.write(`${line}\n`),
  });
  const child = spawn(process.execPath, [launcher, "pit"], {
    env,
    cwd: home,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return new RunningPit(context, child, env);
}

class RunningPit implements PitWorld {
  readonly home: string;
  private readonly missions: string[] = [];
  private readonly context: PitContext;
  private readonly child: ChildProcess;
  readonly env: Record<string, string>;

  constructor(context: PitContext, child: ChildProcess, env: Record<string, string>) {
    this.context = context;
    this.child = child;
    this.env = env;
    this.home = env.HOME!;
  }

  get pid(): number {
    return this.child.pid!;
  }

  cell(mission: string): string {
    return join(this.context.config.missions_root, mission);
  }

  async protect(mission: string): Promise<void> {
    this.missions.push(mission);
    await startMission(this.context, {
      mission,
      agent: "sleep",
      command: ["sleep", "3600"],
      cwd: null,
      env: {},
      revive: "no",
      substitute: null,
      stall_seconds: null,
    });
  }

  async watched(mission: string): Promise<void> {
    const vault = openVault(systemMachine, this.context.config.vault_root, mission);
    const until = performance.now() + WAIT_MS;
    const before = vault.list().length;
    writeFileSync(join(this.cell(mission), "worktree", "watched"), String(performance.now()));
    while (vault.list().length === before) {
      if (performance.now() > until) throw new Error(`no live point of ${mission}`);
      await pause(50);
    }
  }

  async metric(name: string): Promise<number> {
    const { run_dir: runDir } = this.context.config;
    const { socket: socketPath } = JSON.parse(readFileSync(addressPath(runDir), "utf8"));
    const headers = { authorization: `Bearer ${readFileSync(tokenPath(runDir), "utf8").trim()}` };
    const metrics = await new Promise<string>((resolve, reject) => {
      request({ socketPath, path: "/metrics", headers }, (response) => text(response).then(resolve, reject))
        .on("error", reject)
        .end();
    });
    const value = new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1];
    if (value === undefined) throw new Error(`the pit reports no ${name}: ${metrics.slice(0, 200)}`);
    return Number(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    for (const mission of this.missions)
      await stopMission(this.context, parseMissionId(mission), { checkpoint: false, graceSeconds: 0 }).catch(
        () => {},
      );
    this.context[Symbol.dispose]();
  }
}
