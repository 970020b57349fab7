// What protection costs others: an agent's own work in a cell that is watched and in one that is not, and the pit's memory and
// CPU time.
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { median, runProgram, type Trial } from "../harness.ts";
import { buildSmallFiles } from "../snapshot/small-files.ts";
import type { Stage } from "../snapshot/stage.ts";
import { cpuMs, memoryMb, pause, row } from "./figures.ts";
import { openPitWorld } from "./pit-world.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const ROUNDS = 5;
const BURST_FILES = 20_000;
const WATCH_SECONDS = 20;
const IDLE_CELLS = 100;
const IDLE_FILES = 1000;

interface Work {
  readonly name: string;
  readonly goal: number;
  /** Works in a worktree that has nothing else. */
  run(worktree: string): void;
}

export function ownWork(stage: Stage, note: (line: string) => void, rounds = ROUNDS): Trial {
  const name = "an agent's own work, protected";
  return {
    name,
    async measure() {
      const archive = join(stage.work, "burst.tar");
      buildSmallFiles(join(stage.work, "burst"), BURST_FILES);
      runProgram("tar", ["-C", join(stage.work, "burst", "worktree"), "-cf", archive, "."]);
      await using pit = await openPitWorld(join(stage.work, "own-work"), stage.launcher);
      for (const mission of ["protected", "plain"])
        mkdirSync(join(pit.cell(mission), "worktree"), { recursive: true });
      await pit.protect("protected");
      await pit.watched("protected");
      const works: Work[] = [
        {
          name: `tar x of ${BURST_FILES.toLocaleString("en")} files`,
          goal: 1.2,
          run: (worktree) => runProgram("tar", ["-C", worktree, "-xf", archive]),
        },
        ...projectBuild(stage, note),
      ];
      note("Protected work includes what the pit does at the same time; the other cell is not known to it.");
      const rows = [];
      for (const work of works) {
        const times = { protected: [] as number[], plain: [] as number[] };
        for (let round = -1; round < rounds; round += 1) {
          for (const mission of round % 2 === 0 ? ["protected", "plain"] : ["plain", "protected"]) {
            const worktree = join(pit.cell(mission), "worktree", "work");
            rmSync(worktree, { recursive: true, force: true });
            mkdirSync(worktree);
            // The pit saves what was removed before the work begins.
            await pause(3000);
            runProgram("sync", []);
            const start = performance.now();
            work.run(worktree);
            if (round >= 0) times[mission as keyof typeof times].push(performance.now() - start);
          }
        }
        const ratios = times.protected.map((ms, i) => ms / times.plain[i]!);
        rows.push({
          ...row(
            work.name,
            { name: "protected", value: median(times.protected) },
            { name: "unprotected", value: median(times.plain) },
            { goal: work.goal, rounds },
          ),
          ratio: median(ratios),
        });
      }
      return rows;
    },
  };
}

/** `npm ci` and `tsc` of this project. The first run fills a cache of packages; without a package registry there is no row. */
function projectBuild(stage: Stage, note: (line: string) => void): Work[] {
  const project = join(stage.work, "project");
  mkdirSync(project);
  for (const name of ["package.json", "package-lock.json", "tsconfig.json", "src"])
    cpSync(join(ROOT, name), join(project, name), { recursive: true });
  writeFileSync(join(project, "build.json"), JSON.stringify(BUILD));
  const cache = join(stage.work, "npm-cache");
  const install = ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--cache", cache];
  const run = (worktree: string) => {
    cpSync(project, worktree, { recursive: true });
    runProgram("npm", install, { cwd: worktree });
    runProgram(join(worktree, "node_modules", ".bin", "tsc"), ["-p", "build.json"], { cwd: worktree });
  };
  const first = join(stage.work, "first-build");
  mkdirSync(first);
  try {
    run(first);
  } catch (error) {
    note(`\`npm ci\` of this project failed, so its row is missing: ${String(error).slice(0, 200)}`);
    return [];
  } finally {
    rmSync(first, { recursive: true, force: true });
  }
  return [{ name: "npm ci and tsc of this project", goal: 1.05, run }];
}

const BUILD = {
  extends: "./tsconfig.json",
  compilerOptions: {
    noEmit: false,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    incremental: false,
    rootDir: "src",
    outDir: "out",
  },
  include: ["src/**/*.ts"],
  exclude: ["src/**/*.test.ts"],
};

export function pitMemory(stage: Stage, files: number): Trial {
  const name = `pit memory for ${files.toLocaleString("en")} watched files`;
  return {
    name,
    async measure() {
      await using pit = await openPitWorld(join(stage.work, "memory"), stage.launcher);
      mkdirSync(join(pit.cell("small"), "worktree"), { recursive: true });
      await pit.protect("small");
      await pit.watched("small");
      const before = memoryMb(pit.pid);
      buildSmallFiles(pit.cell("large"), files);
      await pit.protect("large");
      await pit.watched("large");
      await pause(5000);
      const more = Math.max(0, memoryMb(pit.pid) - before) * (100_000 / files);
      return [
        row(
          `${name}: per 100,000 files, more than for a small cell`,
          { name: "lazarus pit", value: more },
          { name: "limit", value: 60 },
          { goal: 1, unit: "MiB" },
        ),
      ];
    },
  };
}

export function idleCells(stage: Stage): Trial {
  const name = `${IDLE_CELLS} idle protected cells of ${IDLE_FILES.toLocaleString("en")} files`;
  return {
    name,
    async measure() {
      await using pit = await openPitWorld(join(stage.work, "idle"), stage.launcher);
      const names = Array.from({ length: IDLE_CELLS }, (_, i) => `idle-${i}`);
      for (const mission of names) {
        buildSmallFiles(pit.cell(mission), IDLE_FILES);
        await pit.protect(mission);
      }
      await Promise.all(names.map((mission) => pit.watched(mission)));
      await pause(10_000);
      const before = cpuMs(pit.pid);
      await pause(WATCH_SECONDS * 1000);
      const share = (cpuMs(pit.pid) - before) / (WATCH_SECONDS * 10);
      const figure = (value: number) => ({ name: "lazarus pit", value });
      return [
        row(
          `${name}: memory`,
          figure(memoryMb(pit.pid)),
          { name: "limit", value: 200 },
          { goal: 1, unit: "MiB" },
        ),
        row(`${name}: share of a core`, figure(share), { name: "limit", value: 2 }, { goal: 1, unit: "%" }),
      ];
    },
  };
}
