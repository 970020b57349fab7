// Makes a cell, or completes a partial one. It never overwrites: directories and files that are there stay as they
// are, and every seed file is created atomically, so that two inits at once both succeed and each file has one author.
import { dirname, join } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { crashPoint } from "../platform/crash-point.ts";
import { createFile, makeDirectory, sweepTemporaries } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import { formatJson } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { pidInUse } from "../platform/process-identity.ts";
import type { Config } from "./config.ts";
import { type CellPaths, cellPaths, seedFiles } from "./layout.ts";
import { type MissionId, refuseOutside } from "./mission-id.ts";

/** The paths that were created. */
export interface InitResult {
  readonly paths: CellPaths;
  /** What this call made, relative to the cell; empty when the cell was complete already. */
  readonly made: readonly string[];
}

export function initCell(machine: Machine, config: Config, mission: MissionId): InitResult {
  const paths = cellPaths(config, mission);
  const made: string[] = [];
  const relative = (path: string) => path.slice(paths.root.length + 1);
  const seeds = seedFiles(mission, paths, epochSeconds(machine.clock));
  // Ours to write in. The others belong to the agent: a name there that looks like our litter may be work.
  const seeded = new Set([...seeds.map(([path]) => dirname(path)), dirname(paths.logFile)]);
  const directories = new Set([...config.required_subdirs.map((name) => join(paths.root, name)), ...seeded]);
  try {
    for (const directory of directories) {
      const isNew = makeDirectory(machine.disk, directory);
      if (isNew) made.push(`${relative(directory)}/`);
      if (isNew || !seeded.has(directory)) continue;
      refuseOutside(paths.root, directory);
      sweepTemporaries(machine.disk, directory, pidInUse);
    }
    crashPoint("cell.init.directories-made");
    if (createFile(machine.disk, paths.logFile, "")) made.push(relative(paths.logFile));
    for (const [path, value] of seeds) {
      if (createFile(machine.disk, path, formatJson(value))) made.push(relative(path));
      crashPoint("cell.init.seed-created");
    }
  } catch (error) {
    throw initError(error, paths.root, config.missions_root);
  }
  return { paths, made };
}

function initError(error: unknown, root: string, missionsRoot: string): LazarusError {
  if (systemErrorCode(error) !== "ENOTDIR")
    return asLazarusError(error, `making the cell ${root}`, missionsRoot);
  return new LazarusError("CELL_DAMAGED", `the cell ${root} has a file where a directory belongs`, {
    hint: `ls -la ${root}, and move the file away`,
    cause: error,
  });
}
