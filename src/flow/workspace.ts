// Where flows live: `memory/checkpoints/` below the workspace root, and one such directory per agent below `agents/`.
// Lazarus keeps what is its own in `.lazarus/` inside them, where the Python tool's `*.json` does not look. Nothing
// here leads outside the root, through links included.
import { readdirSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { isFlowId, SCHEMA_STEM } from "./id.ts";

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
export const OWN_DIRECTORY = ".lazarus";

export function placeOf(directory: string, stem: string): FlowPlace {
  // Not `join`: it would be a tenth of the cost of listing 10,000 files.
  const base = `${directory}${sep}${stem}`;
  return { directory, stem, file: `${base}${SUFFIX}`, lockFile: `${base}.lock` };
}

/** The workspace's own directory of flows; an agent's when one is named. */
export function checkpointDirectory(root: string, agent?: string): string {
  return agent === undefined ? join(root, BELOW) : join(root, "agents", agent, BELOW);
}

/** What concerns the whole workspace: audit log, alerts sent, keys of removed flows. */
export function ownDirectory(root: string): string {
  return join(root, BELOW, OWN_DIRECTORY);
}

/** Every directory of flows that exists, the workspace's own first, then the agents' in order of name. */
export function listDirectories(root: string): string[] {
  const candidates = [
    checkpointDirectory(root),
    ...listAgents(root).map((name) => checkpointDirectory(root, name)),
  ];
  return candidates.filter((directory) => isDirectory(directory) && staysInside(root, directory));
}

/** The stems of a directory's flow files, in order of name. */
export function listStems(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
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
  const own = placeOf(checkpointDirectory(root), stem);
  const found = isThere(own.file) ? [own] : [];
  for (const name of listAgents(root)) {
    const place = placeOf(checkpointDirectory(root, name), stem);
    if (isThere(place.file)) found.push(place);
  }
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
      hint: `ls -ld ${directory}, and give the real workspace as --root`,
    },
  );
}

function atAgent(root: string, found: readonly FlowPlace[], agent: string): FlowPlace[] {
  const directory = isFlowId(agent) ? checkpointDirectory(root, agent) : undefined;
  const exact = found.filter((place) => place.directory === directory);
  return exact.length > 0 ? exact : [...found];
}

function listFiles(places: readonly FlowPlace[]): string {
  return places.map((place) => place.file).join(", ");
}

function listAgents(root: string): string[] {
  const agents = join(root, "agents");
  if (!isDirectory(agents)) return [];
  return readdirSync(agents).filter(isFlowId).sort();
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

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}
