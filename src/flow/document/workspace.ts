// Where flows live: `memory/checkpoints/` below the workspace root, and one such directory per agent below `agents/`.
// Nothing here leads outside the root, through links included, and what cannot be looked into is not taken for absent.
import { accessSync, constants, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { isFileStem, SCHEMA_STEM } from "./id.ts";

export interface Workspace {
  readonly machine: Machine;
  readonly root: string;
}

/** One flow's files. */
export interface FlowPlace {
  readonly directory: string;
  /** The workflow id, which is the file's name without `.json`. */
  readonly stem: string;
  readonly file: string;
  readonly lockFile: string;
}

const BELOW = join("memory", "checkpoints");
const SUFFIX = ".json";

export function placeOf(directory: string, stem: string): FlowPlace {
  // Not `join`: it would be a tenth of the cost of listing 10,000 files.
  const base = `${directory}${sep}${stem}`;
  return { directory, stem, file: `${base}${SUFFIX}`, lockFile: `${base}.lock` };
}

/** The workspace's own directory of flows; an agent's when one is named. */
export function checkpointDirectory(root: string, agent?: string): string {
  return agent === undefined ? join(root, BELOW) : join(root, "agents", agent, BELOW);
}

/** A directory of flows that is there, and that nobody here may look into. */
export interface ClosedDirectory {
  readonly directory: string;
  /** `outside`: a link leads it out of the workspace. */
  readonly why: "unreadable" | "outside";
  readonly reason: string;
}

/** Every directory of flows, the workspace's own first, then the agents' in order of name. */
export function findDirectories(root: string): { open: string[]; closed: ClosedDirectory[] } {
  const open: string[] = [];
  const closed: ClosedDirectory[] = [];
  const sort = (directory: string, look: Look): void => {
    if (look === "open") open.push(directory);
    else if (look !== "absent") closed.push({ directory, ...look });
  };
  if (lookAt(root) === "absent") throw noWorkspace(root);
  const own = checkpointDirectory(root);
  sort(own, lookAt(own, root));
  const agents = join(root, "agents");
  const look = lookAt(agents);
  if (look !== "open") sort(agents, look);
  for (const name of look === "open" ? listAgents(root) : []) {
    const directory = checkpointDirectory(root, name);
    sort(directory, lookAt(directory, root));
  }
  return { open, closed };
}

/** The same for those who must see every one of them: a closed one is an error. One that leads outside is no part. */
export function listDirectories(root: string): string[] {
  const { open, closed } = findDirectories(root);
  const unreadable = closed.find(({ why }) => why === "unreadable");
  if (unreadable !== undefined) throw closedError(unreadable);
  return open;
}

export function closedError({ directory, reason }: ClosedDirectory): LazarusError {
  return new LazarusError("PERMISSION", `${directory} ${reason}, so its flows cannot be seen`, {
    hint: `ls -ld ${shellWord(directory)}, or run as the user who owns it`,
  });
}

/** A typing error, or a disk that is not mounted: "nothing to do" would be wrong. */
export function noWorkspace(root: string): LazarusError {
  return new LazarusError("NOT_FOUND", `there is no workspace ${root}`, {
    hint: `ls -ld ${shellWord(root)}; give the right one as --root`,
  });
}

type Look = "open" | "absent" | Pick<ClosedDirectory, "why" | "reason">;

function lookAt(directory: string, root?: string): Look {
  try {
    if (!statSync(directory).isDirectory()) return "absent";
    accessSync(directory, constants.R_OK | constants.X_OK);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return "absent";
    return { why: "unreadable", reason: `cannot be opened (${code})` };
  }
  if (root === undefined || staysInside(root, directory)) return "open";
  return { why: "outside", reason: "is a link that leads out of the workspace" };
}

/** The stems of a directory's flow files, in order of name. */
export function listStems(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw asLazarusError(error, `looking into ${directory}`, shellWord(directory));
  }
  const stems: string[] = [];
  for (const name of names) {
    if (!name.endsWith(SUFFIX) || name.startsWith(".")) continue;
    const stem = name.slice(0, -SUFFIX.length);
    if (stem !== SCHEMA_STEM) stems.push(stem);
  }
  return stems.sort();
}

/** Where a workflow lies; undefined when nowhere. `agent` decides between namesakes. */
export function locateFlow(root: string, stem: string, agent?: string): FlowPlace | undefined {
  const directories = [checkpointDirectory(root)];
  for (const name of listAgents(root)) directories.push(checkpointDirectory(root, name));
  const found = directories.map((directory) => placeOf(directory, stem)).filter(isThere);
  const chosen = found.length > 1 && agent !== undefined ? atAgent(root, found, agent) : found;
  if (chosen.length > 1) {
    throw new LazarusError(
      "FLOW_AMBIGUOUS",
      `there are ${chosen.length} workflows ${stem}: ${listFiles(chosen)}`,
      {
        hint: "say whose it is: --agent NAME, or give that agent's directory as --root",
      },
    );
  }
  const place = chosen[0];
  if (place !== undefined) requireInside(root, place.directory);
  return place;
}

/** Refuses a directory that a link leads out of the workspace. It must exist. */
export function requireInside(root: string, directory: string): void {
  if (staysInside(root, directory)) return;
  throw new LazarusError(
    "FLOW_OUTSIDE_ROOT",
    `${directory} is a link that leads out of the workspace ${root}`,
    {
      hint: `ls -ld ${shellWord(directory)}, and give the real workspace as --root`,
    },
  );
}

function atAgent(root: string, found: readonly FlowPlace[], agent: string): FlowPlace[] {
  const directory = isFileStem(agent) ? checkpointDirectory(root, agent) : undefined;
  const exact = found.filter((place) => place.directory === directory);
  return exact.length > 0 ? exact : [...found];
}

function listFiles(places: readonly FlowPlace[]): string {
  return places.map((place) => place.file).join(", ");
}

/** Other tools name their agents more freely than we do. */
function listAgents(root: string): string[] {
  const agents = join(root, "agents");
  try {
    if (!statSync(agents, { throwIfNoEntry: false })?.isDirectory()) return [];
    return readdirSync(agents)
      .filter((name) => !name.startsWith("."))
      .sort();
  } catch (error) {
    throw asLazarusError(error, `looking into ${agents}`, shellWord(agents));
  }
}

/** Whether a path that exists lies in the workspace when all links are followed. */
export function staysInside(root: string, path: string): boolean {
  try {
    const real = realpathSync.native(root);
    return realpathSync.native(path).startsWith(real.endsWith(sep) ? real : real + sep);
  } catch {
    return false;
  }
}

/** A link to nothing is there, too: a bad file, which its reader names. */
export function isThere({ directory, file }: FlowPlace): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (systemErrorCode(error) === "ENAMETOOLONG") return false;
    throw asLazarusError(error, `looking for ${file}`, shellWord(directory));
  }
}
