// Whether `./lazarus.json` may be read (INV-11): a config can name programs to run, so one that somebody else, or an agent,
// may have put into the current directory must not redirect the user's command. Like git's safe.directory, and only for
// that file: --config and LAZARUS_CONFIG name a file explicitly. `lazarus config trust` accepts a file by path and content. All of
// this runs only if the file exists, so it costs nothing on the hot path.
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { makeDirectory } from "../platform/durable.ts";
import { isJsonObject, type JsonObject, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";

export interface TrustRules {
  /** Undefined on systems without user ids. */
  readonly userId: number | undefined;
  /** From the configuration that applies without the file. */
  readonly missionsRoot: string;
  readonly runDir: string;
  /** The files that a human has trusted, with the SHA-256 of their content. */
  readonly trustFile: string;
}

/** Why the config file of the current directory must not be read; undefined when it may be. */
export function findTrustProblem(file: string, rules: TrustRules): string | undefined {
  const real = realpathSync(file);
  const trusted = readTrusted(rules.trustFile)[real];
  if (trusted !== undefined && trusted === digestOf(real)) return undefined;
  const directories = [...new Set([realpathSync(dirname(file)), dirname(real)])];
  const reason =
    findForeignAccess([file, real, ...directories], rules.userId) ??
    directories.map((directory) => findAgentAccess(directory, rules)).find((each) => each !== undefined);
  if (reason === undefined || trusted === undefined) return reason;
  return `it has changed since it was trusted, and ${reason}`;
}

/** Accepts the file with its current content. Returns its real path. */
export function trustConfig(machine: Machine, trustFile: string, file: string): string {
  const real = realpathSync(file);
  writeTrusted(machine, trustFile, { ...readTrusted(trustFile), [real]: digestOf(real) });
  return real;
}

/** Returns whether the file was trusted. */
export function distrustConfig(machine: Machine, trustFile: string, file: string): boolean {
  const real = existsSync(file) ? realpathSync(file) : file;
  const { [real]: before, ...rest } = readTrusted(trustFile);
  if (before !== undefined) writeTrusted(machine, trustFile, rest);
  return before !== undefined;
}

function readTrusted(trustFile: string): Readonly<Record<string, unknown>> {
  const reading = readJsonFile(trustFile);
  return reading.ok && isJsonObject(reading.value.files) ? reading.value.files : {};
}

function writeTrusted(machine: Machine, trustFile: string, files: JsonObject): void {
  makeDirectory(machine.disk, dirname(trustFile));
  writeJsonFile(machine.disk, trustFile, { files });
}

function digestOf(path: string): string {
  const { createHash } = process.getBuiltinModule("node:crypto");
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function findForeignAccess(paths: readonly string[], userId: number | undefined): string | undefined {
  if (userId === undefined) return undefined;
  for (const path of paths) {
    const { uid, gid, mode, isLink } = describePath(path);
    if (uid !== userId && uid !== 0) return `${path} belongs to another user`;
    // The permission bits of a link mean nothing. Many systems give every user a private group.
    const groupWrites = (mode & 0o020) !== 0 && gid !== userId;
    if (!isLink && ((mode & 0o002) !== 0 || groupWrites)) return `other users can write to ${path}`;
  }
  return undefined;
}

function describePath(path: string) {
  const stat = lstatSync(path);
  return { uid: stat.uid, gid: stat.gid, mode: stat.mode, isLink: stat.isSymbolicLink() };
}

function findAgentAccess(directory: string, { missionsRoot, runDir }: TrustRules): string | undefined {
  const root = realOf(missionsRoot);
  if (directory !== root && isWithin(directory, root))
    return `it is in a cell below ${root}, where agents can write`;
  for (let each = directory; ; each = dirname(each)) {
    if (existsSync(join(each, "config", "cell.json")) && existsSync(join(each, "meta", "mission.json")))
      return `it is in the cell ${each}, where an agent can write`;
    if (each === dirname(each)) break;
  }
  const mission = agentsWithDirectory(runDir).find((agent) =>
    isWithin(directory, realOf(agent.cwd)),
  )?.mission;
  return mission === undefined ? undefined : `the agent of ${mission} works in this directory`;
}

/** Agents that were started in a directory outside their cell. */
function agentsWithDirectory(runDir: string): { mission: string; cwd: string }[] {
  let missions: string[] = [];
  try {
    missions = readdirSync(join(runDir, "agents"));
  } catch {
    // No agent was ever started.
  }
  return missions.flatMap((mission) => {
    const reading = readJsonFile(join(runDir, "agents", mission, "record.json"));
    const cwd = reading.ok ? reading.value.cwd : undefined;
    return typeof cwd === "string" ? [{ mission, cwd }] : [];
  });
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

function realOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path);
}
