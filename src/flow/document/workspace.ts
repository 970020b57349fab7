// Where flow files are: `memory/checkpoints/` below the workspace root, and one such directory per agent below `agents/`.
// No path leads outside the root, not even through links, and an unreadable directory is not treated as missing.
import { accessSync, constants, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { isFileStem, SCHEMA_STEM } from "./id.ts";

/** A directory with flows, and the machine it is on. */
export interface Workspace {
  readonly machine: Machine;
  readonly root: string;
  /** Where cells are: a workspace outside of them may be the worktree of one. */
  readonly missionsRoot?: () => string;
}

/** One flow's files. */
export interface FlowPlace {
  readonly directory: string;
  /** The workflow id, which is the file's name without `.json`. */
  readonly stem: string;
  readonly file: string;
  readonly lockFile: string;
}

const FLOWS = join("memory", "checkpoints");
const SUFFIX = ".json";

export function placeOf(directory: string, stem: string): FlowPlace {
  // Not `join`, which takes a tenth of the time of listing 10,000 files.
  const base = `${directory}${sep}${stem}`;
  return { directory, stem, file: `${base}${SUFFIX}`, lockFile: `${base}.lock` };
}

/** The directory of flows of the workspace, or of one agent. */
export function checkpointDirectory(root: string, agent?: string): string {
  return agent === undefined ? join(root, FLOWS) : join(root, "agents", agent, FLOWS);
}

/** A directory of flows that exists but cannot be listed. */
export interface ClosedDirectory {
  readonly directory: string;
  /** `outside`: it is a link that leads out of the workspace. */
  readonly why: "unreadable" | "outside";
  readonly reason: string;
}

/** Every directory of flows: the workspace's own first, then those of the agents by name. */
export function findDirectories(root: string): { open: string[]; closed: ClosedDirectory[] } {
  const open: string[] = [];
  const closed: ClosedDirectory[] = [];
  const add = (directory: string, access: Access): void => {
    if (access === "open") open.push(directory);
    else if (access !== "absent") closed.push({ directory, ...access });
  };
  if (checkAccess(root) === "absent") throw missingWorkspaceError(root);
  const own = checkpointDirectory(root);
  add(own, checkAccess(own, root));
  const agents = join(root, "agents");
  const access = checkAccess(agents);
  if (access !== "open") add(agents, access);
  for (const name of access === "open" ? listAgents(root) : []) {
    const directory = checkpointDirectory(root, name);
    add(directory, checkAccess(directory, root));
  }
  return { open, closed };
}

/** The directories of flows; throws if one cannot be read. One that leads outside is not part of the workspace. */
export function listDirectories(root: string): string[] {
  const { open, closed } = findDirectories(root);
  const unreadable = closed.find(({ why }) => why === "unreadable");
  if (unreadable !== undefined) throw closedDirectoryError(unreadable);
  return open;
}

export function closedDirectoryError({ directory, reason }: ClosedDirectory): LazarusError {
  return new LazarusError("PERMISSION", `${directory} ${reason}, so its flows cannot be read`, {
    hint: `ls -ld ${shellWord(directory)}, or run as the user who owns it`,
  });
}

/** Probably a typo or a disk that is not mounted, so "nothing to do" would be wrong. */
export function missingWorkspaceError(root: string): LazarusError {
  return new LazarusError("NOT_FOUND", `workspace ${root} does not exist`, {
    hint: `ls -ld ${shellWord(root)}, or name another workspace with --root`,
  });
}

type Access = "open" | "absent" | Pick<ClosedDirectory, "why" | "reason">;

function checkAccess(directory: string, root?: string): Access {
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

/** The stems of the flow files in a directory, sorted. */
export function listStems(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw asLazarusError(error, `listing ${directory}`, shellWord(directory));
  }
  const stems: string[] = [];
  for (const name of names) {
    if (!name.endsWith(SUFFIX) || name.startsWith(".")) continue;
    const stem = name.slice(0, -SUFFIX.length);
    if (stem !== SCHEMA_STEM) stems.push(stem);
  }
  return stems.sort();
}

/** The place of a workflow; undefined when there is none. `agent` selects among flows of the same name. */
export function locateFlow(root: string, stem: string, agent?: string): FlowPlace | undefined {
  const directories = [checkpointDirectory(root)];
  for (const name of listAgents(root)) directories.push(checkpointDirectory(root, name));
  const found = directories.map((directory) => placeOf(directory, stem)).filter(flowExists);
  const chosen = found.length > 1 && agent !== undefined ? atAgent(root, found, agent) : found;
  if (chosen.length > 1) {
    throw new LazarusError(
      "FLOW_AMBIGUOUS",
      `${chosen.length} workflows are named ${stem}: ${listFiles(chosen)}`,
      {
        hint: "add --agent NAME, or use that agent's directory as --root",
      },
    );
  }
  const place = chosen[0];
  if (place !== undefined) requireInside(root, place.directory);
  return place;
}

/** Throws if a link leads an existing directory out of the workspace. */
export function requireInside(root: string, directory: string): void {
  if (staysInside(root, directory)) return;
  throw new LazarusError(
    "FLOW_OUTSIDE_ROOT",
    `${directory} is a link that leads out of the workspace ${root}`,
    {
      hint: `ls -ld ${shellWord(directory)}, and name the real workspace with --root`,
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

/** Not limited to valid ids: other tools allow more agent names. */
function listAgents(root: string): string[] {
  const agents = join(root, "agents");
  try {
    if (!statSync(agents, { throwIfNoEntry: false })?.isDirectory()) return [];
    return readdirSync(agents)
      .filter((name) => !name.startsWith("."))
      .sort();
  } catch (error) {
    throw asLazarusError(error, `listing ${agents}`, shellWord(agents));
  }
}

/** Whether an existing path is inside the workspace after all links are resolved. */
export function staysInside(root: string, path: string): boolean {
  try {
    const real = realpathSync.native(root);
    return realpathSync.native(path).startsWith(real.endsWith(sep) ? real : real + sep);
  } catch {
    return false;
  }
}

/** True for a dangling link too: reading it reports a bad file. */
export function flowExists({ directory, file }: FlowPlace): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (systemErrorCode(error) === "ENAMETOOLONG") return false;
    throw asLazarusError(error, `checking ${file}`, shellWord(directory));
  }
}
