// Live protection: what a live point costs in the vault and in time, and what protection costs an agent and the machine.
import { join } from "node:path";
import type { Bench } from "./harness.ts";
import { missedChanges, randomKills } from "./live/losses.ts";
import { millionFiles } from "./live/million.ts";
import { growingLog, livePoints } from "./live/points.ts";
import { idleCells, ownWork, pitMemory } from "./live/protection.ts";
import { tenFiles } from "./live/ten-files.ts";
import { Stage } from "./snapshot/stage.ts";

const FILES = 118_000;
const MANY_FILES = 1_000_000;
const POINTS = 1000;
/** A cell of ordinary size: the number of files does not matter for what a point adds to the vault. */
const POINT_FILES = 2000;
const LOG_MB = 50;
/** 200 are in test/soak/loss.test.ts. */
const KILLS = 20;
/** For a changed `--files`, the same factor as between the two sizes above. */
const MANY = MANY_FILES / FILES;
const AUDITED_FILES = 5000;
const notes: string[] = [];

export const bench: Bench = {
  about: `Live points are taken by one process, one after another, as the pit takes them; \`lazarus checkpoint\` is a whole process.
Peers sync nothing; \`sync\` runs before each turn. Files are small text files.`,
  prepare(directory, { files = FILES, points = POINTS, kills = KILLS, rounds }) {
    notes.length = 0;
    const note = (line: string) => notes.push(line);
    const stage = new Stage(join(directory, "home"), directory);
    stage.configure("gzip");
    const options = { files: Math.min(files, POINT_FILES), points, note };
    return [
      livePoints({ ...options, home: join(directory, "points") }),
      growingLog({ ...options, home: join(directory, "log") }, LOG_MB),
      tenFiles(stage, files, note),
      millionFiles({ directory, few: files, many: Math.round(files * MANY), note }),
      ownWork(stage, note, rounds),
      pitMemory(stage, files),
      idleCells(stage),
      missedChanges(stage, Math.min(files, AUDITED_FILES)),
      randomKills(kills, note),
    ];
  },
  notes: () => notes,
};
