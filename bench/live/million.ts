// Ten changed files in a very large cell, against the same in a large one: the cost of a live point must not grow with the cell.
import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMission } from "../../src/snapshot/open-mission.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import type { Trial } from "../harness.ts";
import { type Runner, race } from "../snapshot/race.ts";
import { buildSmallFiles } from "../snapshot/small-files.ts";
import { pause } from "./figures.ts";
import { createEditor, LIVE } from "./ten-files.ts";

const MEMORY = "/dev/shm";
/** A file takes a page and an inode. */
const BYTES_PER_FILE = 6 << 10;
const ROUNDS = 21;
const YOUNG_MS = 2500;

export interface MillionOptions {
  readonly directory: string;
  readonly few: number;
  readonly many: number;
  readonly note: (line: string) => void;
}

export function millionFiles({ directory, few, many, note }: MillionOptions): Trial {
  const name = `ten changed files of ${many.toLocaleString("en")}`;
  return {
    name,
    async measure() {
      const isInMemory = hasRoom((few + many) * BYTES_PER_FILE);
      const home = isInMemory ? mkdtempSync(join(MEMORY, "lazarus-bench-")) : join(directory, "million");
      note(
        `The cell of ${many.toLocaleString("en")} files and its peer are ${isInMemory ? "in memory (tmpfs)" : "on the disk"}.`,
      );
      try {
        mkdirSync(home, { recursive: true });
        writeFileSync(join(home, "config.json"), JSON.stringify({ retention: { auto: false } }));
        const ours = await openPoints(home, "many", many);
        const peer = await openPoints(home, "few", few);
        return await race({ name, ours, peers: [{ ...peer, goal: 1.5 }], rounds: ROUNDS, warmUps: 3 });
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    },
  };
}

/** Leaves half of the memory for everything else. */
function hasRoom(bytes: number): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > 2 * bytes;
}

/** Takes a point of ten changed files in a cell of that size. */
async function openPoints(home: string, mission: string, files: number): Promise<Runner> {
  const context = openMission(mission, { home });
  buildSmallFiles(context.cellRoot, files);
  await takeCheckpoint(context, { reason: "baseline" });
  // Until the stat of the last files is old enough to be trusted.
  await pause(YOUNG_MS);
  await takeCheckpoint(context, LIVE);
  const edit = createEditor(context.cellRoot, files);
  let changed: string[] = [];
  return {
    name: `live point, ${files.toLocaleString("en")} files`,
    prepare() {
      changed = edit();
    },
    run: () => takeCheckpoint(context, { ...LIVE, dirty: { paths: new Set(changed), trees: new Set() } }),
  };
}
