// Turns an imported tree into the cell of a mission: writes the new id and paths into its seed files and adds what is
// missing. The tree is untrusted: nothing is read or written through a symlink.
import { chmodSync, chownSync, lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { type CellPaths, pathsBelow, seedFiles } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { epochSeconds } from "../../platform/clock.ts";
import { createFile, makeDirectory } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { formatJson, type JsonObject, readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";

export interface Adoption {
  readonly mission: MissionId;
  /** Where the files are now. */
  readonly stagedRoot: string;
  /** Where they will be, which is what the seed files must contain. */
  readonly finalRoot: string;
  /** The name of the archive, for meta/mission.json. */
  readonly source: string;
}

export function adoptCell(machine: Machine, config: Config, adoption: Adoption): void {
  const { stagedRoot, finalRoot, mission, source } = adoption;
  const final: CellPaths = pathsBelow(config, finalRoot);
  const staged = (path: string) => join(stagedRoot, path.slice(finalRoot.length));
  for (const name of config.required_subdirs) ensureDirectory(machine, stagedRoot, name);
  const logFile = staged(final.logFile);
  ensureDirectory(machine, stagedRoot, "logs");
  if (lstatSync(logFile, { throwIfNoEntry: false }) === undefined) {
    createFile(machine.disk, logFile, "");
    matchOwner(stagedRoot, logFile);
  }
  for (const [path, seed] of seedFiles(mission, final, epochSeconds(machine.clock))) {
    const file = staged(path);
    ensureDirectory(machine, stagedRoot, dirname(file).slice(stagedRoot.length + 1));
    if (path === final.missionFile)
      rewriteSeed(machine, stagedRoot, file, { ...(seed as JsonObject), imported_from: source });
    // The heartbeat in the archive is from another agent.
    else rewriteSeed(machine, stagedRoot, file, seed as JsonObject, path === final.heartbeatFile);
  }
}

/** Sets the fields that name the mission or a path, or all; fields that only the archive has are kept. */
function rewriteSeed(machine: Machine, root: string, file: string, seed: JsonObject, isNew = false): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found === undefined) {
    createFile(machine.disk, file, formatJson(seed));
    matchOwner(root, file);
    return;
  }
  const reading = readJsonFile(file);
  if (!found.isFile() || !reading.ok) return;
  const { status: _, timestamp: __, created_at: ___, ...identity } = seed;
  const next = { ...reading.value, ...(isNew ? seed : identity) };
  if (JSON.stringify(next) === JSON.stringify(reading.value)) return;
  writeJsonFile(machine.disk, file, next, { mode: found.mode & 0o777 });
  matchOwner(root, file);
  chmodSync(file, found.mode & 0o777);
}

/** Refuses anything but a directory: writes through a symlink would leave the cell. */
function ensureDirectory(machine: Machine, root: string, relative: string): void {
  let path = root;
  for (const name of relative.split("/")) {
    path = join(path, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) {
      makeDirectory(machine.disk, path);
      matchOwner(root, path);
    } else if (!found.isDirectory()) {
      throw new LazarusError("LAYER_HOSTILE", `the archive was refused: its ${relative} is not a directory`, {
        hint: "list it with tar tvf; nothing was imported",
      });
    }
  }
}

/** A file that root adds gets the owner of the cell. */
function matchOwner(root: string, path: string): void {
  const { uid, gid } = lstatSync(root);
  const own = lstatSync(path);
  if (own.uid !== uid || own.gid !== gid) chownSync(path, uid, gid);
}
