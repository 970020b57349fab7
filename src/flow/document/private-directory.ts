// What Lazarus keeps beside the flows of a directory, in `.lazarus/`, where the Python tool's `*.json` does not look. It
// writes, appends and deletes in there, and agents and strangers can write around it: so none of it is ever reached
// through a link.
import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { checkpointDirectory, requireInside, type Workspace } from "./workspace.ts";

const OWN_DIRECTORY = ".lazarus";

export function ownPath(directory: string, ...parts: string[]): string {
  return join(directory, OWN_DIRECTORY, ...parts);
}

/** What concerns the whole workspace: audit log, alerts sent, keys of removed flows. */
export function ownDirectory(root: string): string {
  return ownPath(checkpointDirectory(root));
}

/** Makes a directory of our own below a directory of flows. */
export function makeOwn(workspace: Workspace, directory: string, ...parts: string[]): string {
  if (existsSync(directory)) requireOwn(workspace, directory, ...parts);
  makeDirectory(workspace.machine.disk, ownPath(directory, ...parts));
  return requireOwn(workspace, directory, ...parts);
}

/** The same for one that has been made before. */
export function requireOwn({ root }: Workspace, directory: string, ...parts: string[]): string {
  requireInside(root, directory);
  const link = findLink(directory, parts);
  if (link === undefined) return ownPath(directory, ...parts);
  throw new LazarusError("FLOW_OUTSIDE_ROOT", `${link} is a link; nothing is kept behind it`, {
    hint: `ls -ld ${shellWord(link)}, and remove the link`,
  });
}

/** Whether it lies where its name says. */
export function isOwn(directory: string, ...parts: string[]): boolean {
  return existsSync(ownPath(directory, ...parts)) && findLink(directory, parts) === undefined;
}

/** Refuses to append to, or to read, what is no plain file: a link would lead elsewhere, a FIFO would wait for ever. */
export function requirePlain(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true) return;
  throw new LazarusError("FLOW_OUTSIDE_ROOT", `${path} is not a regular file; it is left alone`, {
    hint: `ls -ld ${shellWord(path)}, and put it aside: mv -n ${shellWord(path)} ${shellWord(`${path}.aside`)}`,
  });
}

function findLink(directory: string, parts: readonly string[]): string | undefined {
  const paths = Array.from({ length: parts.length + 1 }, (_, i) => ownPath(directory, ...parts.slice(0, i)));
  return paths.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink());
}
