// `.lazarus/`, the private directory next to the flow files, which the Python tool's `*.json` pattern does not match.
// Lazarus writes, appends and deletes there, and untrusted processes can write next to it, so no path in it is ever
// followed through a symbolic link.
import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { checkpointDirectory, requireInside, type Workspace } from "./workspace.ts";

const NAME = ".lazarus";

export function privatePath(directory: string, ...parts: string[]): string {
  return join(directory, NAME, ...parts);
}

/** The private directory of the whole workspace: audit log, sent alerts, used keys. */
export function rootPrivateDirectory(root: string): string {
  return privatePath(checkpointDirectory(root));
}

/** Creates the private directory, or a directory below it, for a directory of flows. */
export function makePrivateDirectory(workspace: Workspace, directory: string, ...parts: string[]): string {
  if (existsSync(directory)) requirePrivateDirectory(workspace, directory, ...parts);
  makeDirectory(workspace.machine.disk, privatePath(directory, ...parts));
  return requirePrivateDirectory(workspace, directory, ...parts);
}

/** Throws if the directory leads through a link. Does not create it. */
export function requirePrivateDirectory({ root }: Workspace, directory: string, ...parts: string[]): string {
  requireInside(root, directory);
  const link = findLink(directory, parts);
  if (link === undefined) return privatePath(directory, ...parts);
  throw new LazarusError(
    "FLOW_OUTSIDE_ROOT",
    `${link} is a symbolic link; Lazarus does not write through it`,
    {
      hint: `ls -ld ${shellWord(link)}, and remove the link`,
    },
  );
}

/** Whether it exists and is reached without a link. */
export function isPrivateDirectory(directory: string, ...parts: string[]): boolean {
  return existsSync(privatePath(directory, ...parts)) && findLink(directory, parts) === undefined;
}

/** Refuses to read or append to anything but a regular file: a link could lead anywhere, a FIFO would block. */
export function requireRegularFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true) return;
  throw new LazarusError("FLOW_OUTSIDE_ROOT", `${path} is not a regular file; it was not changed`, {
    hint: `ls -ld ${shellWord(path)}, and move it away: mv -n ${shellWord(path)} ${shellWord(`${path}.moved`)}`,
  });
}

function findLink(directory: string, parts: readonly string[]): string | undefined {
  const paths = Array.from({ length: parts.length + 1 }, (_, i) =>
    privatePath(directory, ...parts.slice(0, i)),
  );
  return paths.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink());
}
