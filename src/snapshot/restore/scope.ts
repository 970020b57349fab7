// The part of a cell that a restore or diff covers: the whole cell, the cell without the conversation, or the paths given
// with --path and everything below them. Pure.
import { isAbsolute, normalize } from "node:path";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import { LazarusError } from "../../platform/errors.ts";
import { pathInTree, rootOf, type TreeRoot } from "../model/cell-tree.ts";
import { parentPath } from "../model/path-bytes.ts";

export interface Scope {
  /** The selected paths, without those below another one; undefined for the whole cell. */
  readonly only: readonly string[] | undefined;
  has(path: string): boolean;
}

export const WHOLE_CELL: Scope = { only: undefined, has: () => true };

/** What of a checkpoint to restore; undefined for everything. */
export type Part = "files" | "conversation";

/** Everything but the conversation, which is not changed. */
export const FILES_ONLY: Scope = { only: undefined, has: (path) => !isConversation(path) };

export function withoutConversation(scope: Scope): Scope {
  if (scope.only === undefined) return FILES_ONLY;
  return { only: scope.only, has: (path) => scope.has(path) && !isConversation(path) };
}

function isConversation(path: string): boolean {
  return path === CONVERSATION_DIRECTORY || path.startsWith(`${CONVERSATION_DIRECTORY}/`);
}

/** Whether the whole conversation is restored, and has to be put back to where the agent keeps it. */
export function coversConversation(scope: Scope): boolean {
  return scope.has(CONVERSATION_DIRECTORY);
}

/** The paths of a part. */
export function pathsOf(part: Part | undefined, paths: readonly string[]): readonly string[] {
  if (part === undefined) return paths;
  if (paths.length > 0)
    throw new LazarusError("USAGE", `a restore of the ${part} only cannot be limited to single paths`, {
      hint: "give --path, or --files-only, or --conversation-only",
    });
  return part === "conversation" ? [CONVERSATION_DIRECTORY] : [];
}

/** Takes paths as typed: relative to the cell, or absolute inside it or its worktree. */
export function createScope(given: readonly string[], tree: TreeRoot, part?: Part): Scope {
  if (given.length === 0) return part === "files" ? FILES_ONLY : WHOLE_CELL;
  const paths = new Set(given.map((text) => cellPath(text, tree)));
  if (paths.has(".")) return WHOLE_CELL;
  const only = [...paths].filter((path) => !ancestors(path).some((above) => paths.has(above))).sort();
  const exact = new Set(only);
  return { only, has: (path) => exact.has(path) || ancestors(path).some((above) => exact.has(above)) };
}

/** Every directory above a path, the nearest first, the cell itself last. */
export function ancestors(path: string): string[] {
  const found: string[] = [];
  for (let above = path; above !== "."; ) {
    above = parentPath(above);
    found.push(above);
  }
  return found;
}

function cellPath(text: string, tree: TreeRoot): string {
  const clean = normalize(text).replace(/(?<=.)\/+$/, "");
  const path = isAbsolute(clean) ? pathInTree(tree, clean) : clean;
  if (text !== "" && path !== undefined && path !== ".." && !path.startsWith("../") && !path.includes("\0"))
    return path;
  throw new LazarusError("USAGE", `the path ${JSON.stringify(text)} is not inside the cell ${rootOf(tree)}`, {
    hint: "give paths relative to the cell, such as worktree/src",
  });
}
