// Creates a cell or completes a partial one. Never overwrites: existing directories and files are not changed, and every
// seed file is created atomically, so that two concurrent inits both succeed and each file has one author.
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { crashPoint } from "../platform/crash-point.ts";
import type { Disk } from "../platform/disk.ts";
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
  /** What this call created, relative to the cell; empty if the cell was already complete. */
  readonly made: readonly string[];
}

export function initCell(machine: Machine, config: Config, mission: MissionId): InitResult {
  const paths = cellPaths(config, mission);
  const made: string[] = [];
  const relative = (path: string) => path.slice(paths.root.length + 1);
  const seeds = seedFiles(mission, paths, epochSeconds(machine.clock));
  // Only directories that Lazarus writes to are swept: elsewhere, a file that looks like our temporary may be the agent's.
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
    if (createMissing(machine.disk, paths.logFile, "")) made.push(relative(paths.logFile));
    for (const [path, value] of seeds) {
      if (createMissing(machine.disk, path, formatJson(value))) made.push(relative(path));
      crashPoint("cell.init.seed-created");
    }
  } catch (error) {
    throw initError(error, paths.root, config.missions_root);
  }
  return { paths, made };
}

/** A temporary file would change the modification time of a directory in which nothing is missing. */
function createMissing(disk: Disk, path: string, text: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return createFile(disk, path, text);
  // The process that created it may have been killed before this.
  disk.fsyncDirectory(dirname(path));
  return false;
}

function initError(error: unknown, root: string, missionsRoot: string): LazarusError {
  if (systemErrorCode(error) !== "ENOTDIR")
    return asLazarusError(error, `creating the cell ${root}`, missionsRoot);
  return new LazarusError("CELL_DAMAGED", `the cell ${root} contains a file where a directory is required`, {
    hint: `ls -la ${root}, and move the file away`,
    cause: error,
  });
}
