// Where a mission's agent runs, for code that looks for its conversation without having started it: checkpoints, restores,
// hooks. Written by the pit before each life, next to the agent's record: outside the cell, so that neither a restore nor
// an import decides which directories of the user's home are read or written.
import { join } from "node:path";
import { isJsonObject, type JsonObject, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Place } from "./adapter.ts";

/** `directory` is that of the agent in run_dir (agent-paths.ts). */
function placeFile(directory: string): string {
  return join(directory, "place.json");
}

/** Of the environment, only the variables that name a path are kept: they move a conversation, and are not secrets. */
export function writePlace(machine: Pick<Machine, "disk">, directory: string, place: Place): void {
  const { cwd, home, env, links } = place;
  const paths = Object.entries(env).filter(([, value]) => value?.startsWith("/"));
  const document = {
    format: 1,
    cwd,
    home,
    env: Object.fromEntries(paths),
    ...(links !== undefined && { links }),
  };
  writeJsonFile(machine.disk, placeFile(directory), document);
}

/** Undefined when no agent was ever started in this cell on this machine. */
export function readPlace(directory: string): Place | undefined {
  const reading = readJsonFile(placeFile(directory));
  if (!reading.ok) return undefined;
  const { cwd, home, env, links } = reading.value;
  if (!isAbsolutePath(cwd) || !isAbsolutePath(home) || !isJsonObject(env)) return undefined;
  return { cwd, home, env: onlyPaths(env), ...(isJsonObject(links) && { links: onlyPaths(links) }) };
}

function onlyPaths(values: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(isPathVariable));
}

function isAbsolutePath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/") && !value.includes("\0");
}

function isPathVariable(entry: [string, unknown]): entry is [string, string] {
  return isAbsolutePath(entry[1]);
}
