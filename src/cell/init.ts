// Makes a cell, or completes a partial one. It never overwrites: directories and files that are there stay as they
// are, and every seed file is created atomically, so that two inits at once both succeed and each file has one author.
import { dirname } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { crashPoint } from "../platform/crash-point.ts";
import { createFile, makeDirectory, sweepTemporaries } from "../platform/durable.ts";
import { asLazarusError } from "../platform/errors.ts";
import { formatJson } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { pidInUse } from "../platform/process-identity.ts";
import type { Config } from "./config.ts";
import { type CellPaths, cellPaths, seedFiles } from "./layout.ts";
import type { MissionId } from "./mission-id.ts";

export interface InitResult {
  readonly paths: CellPaths;
  /** What this call made, relative to the cell; empty when the cell was complete already. */
  readonly made: readonly string[];
}

export function initCell(machine: Machine, config: Config, mission: MissionId): InitResult {
  const paths = cellPaths(config, mission);
  const made: string[] = [];
  const relative = (path: string) => path.slice(paths.root.length + 1);
  const directories = new Set(config.required_subdirs.map((name) => `${paths.root}/${name}`));
  const seeds = seedFiles(mission, paths, epochSeconds(machine.clock));
  for (const [path] of [...seeds, [paths.logFile] as const]) directories.add(dirname(path));
  try {
    for (const directory of directories) {
      if (makeDirectory(machine.disk, directory)) made.push(`${relative(directory)}/`);
      else sweepTemporaries(machine.disk, directory, pidInUse);
    }
    crashPoint("cell.init.directories-made");
    if (createFile(machine.disk, paths.logFile, "")) made.push(relative(paths.logFile));
    for (const [path, value] of seeds) {
      if (createFile(machine.disk, path, formatJson(value))) made.push(relative(path));
      crashPoint("cell.init.seed-created");
    }
  } catch (error) {
    throw asLazarusError(error, `making the cell ${paths.root}`, config.missions_root);
  }
  return { paths, made };
}
