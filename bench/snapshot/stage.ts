// Where the measured commands run: a LAZARUS_HOME in the bench's own directory, the peers' repositories next to it, and
// ways to reset them. Every call is a whole process, including its start.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runProgram } from "../harness.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PROBE = join(import.meta.dirname, "probe.mjs");

export interface Probe {
  readonly peakKb: number;
  /** Time spent in fsync. */
  readonly syncMs: number;
}

export class Stage {
  readonly home: string;
  readonly work: string;
  readonly env: Record<string, string>;
  /** A copy of the program, so that a build during the bench does not change what is measured. */
  readonly launcher: string;

  /** `home` is kept between runs, `work` is not. */
  constructor(home: string, work: string) {
    this.home = home;
    this.work = work;
    this.env = {
      HOME: work,
      PATH: process.env.PATH ?? "",
      LAZARUS_HOME: home,
      RESTIC_PASSWORD: "bench",
      RESTIC_REPOSITORY: join(work, "restic"),
      RESTIC_CACHE_DIR: join(work, "restic-cache"),
    };
    mkdirSync(join(home, "missions"), { recursive: true });
    for (const part of ["bin", "dist", "package.json"])
      cpSync(join(ROOT, part), join(work, "program", part), { recursive: true });
    this.launcher = join(work, "program", "bin", "lazarus.js");
  }

  configure(compression: "gzip" | "zstd"): void {
    const config = { snapshot: { compression }, retention: { auto: false } };
    writeFileSync(join(this.home, "config.json"), `${JSON.stringify(config)}\n`);
  }

  cell(mission: string): string {
    return join(this.home, "missions", mission);
  }

  lazarus(...words: string[]): string {
    return this.run(process.execPath, [this.launcher, ...words]);
  }

  /** Like `lazarus`, and measures memory and fsync time. */
  probe(...words: string[]): Probe {
    const file = join(this.work, "probe.json");
    runProgram(process.execPath, ["--import", PROBE, this.launcher, ...words], {
      env: { ...this.env, LAZARUS_BENCH_PROBE: file },
      cwd: this.work,
    });
    return JSON.parse(readFileSync(file, "utf8"));
  }

  checkpoint(mission: string): { id: string; outcome: string } {
    const { checkpoint_id: id, outcome } = JSON.parse(this.lazarus("checkpoint", mission, "--json"));
    return { id, outcome };
  }

  /** Removes all checkpoints of a mission, their cache and their git refs. */
  forget(mission: string): void {
    rmSync(join(this.home, "vault", mission), { recursive: true, force: true });
    rmSync(join(this.home, "run", "cache", mission), { recursive: true, force: true });
    const worktree = join(this.cell(mission), "worktree");
    if (!existsSync(join(worktree, ".git"))) return;
    const refs = this.run("git", [
      "-C",
      worktree,
      "for-each-ref",
      "--format=delete %(refname)",
      "refs/lazarus",
    ]);
    this.shell(
      `git -C ${worktree} update-ref --stdin <<'END'\n${refs}END\ngit -C ${worktree} prune --expire=now`,
    );
  }

  /** Size of a mission's vault without its index. */
  vaultBytes(mission: string): number {
    const root = join(this.home, "vault", mission);
    let bytes = 0;
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true }))
      if (entry.isFile() && entry.name !== "index.json")
        bytes += statSync(join(entry.parentPath, entry.name)).size;
    return bytes;
  }

  run(program: string, args: readonly string[]): string {
    return runProgram(program, args, { env: this.env, cwd: this.work, output: true });
  }

  shell(script: string): string {
    return this.run("bash", ["-o", "pipefail", "-ec", script]);
  }

  /** Whether an earlier trial left this in the temporary directory. */
  has(name: string): boolean {
    return existsSync(join(this.work, name));
  }

  /** A path in the temporary directory; whatever was there is removed. */
  fresh(name: string): string {
    const path = join(this.work, name);
    rmSync(path, { recursive: true, force: true });
    return path;
  }
}

export function isInstalled(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}
