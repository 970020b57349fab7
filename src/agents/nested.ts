// Whether a hook was called by an agent that another agent started (`claude -p` in a Bash tool). Such a process inherits the
// variables of the life that it runs in, but its session and its calls are not the mission's. On the hot path.
import { readFileSync } from "node:fs";
import { readProcessFields } from "../platform/process-identity.ts";
import type { Adapter } from "./adapter.ts";

type Programs = Pick<Adapter, "programs" | "packages">;

const KEEPER = /\/keeper-[0-9a-f]+\.sh$/;
/** More processes between a hook and its keeper mean a loop, or a table that changes while it is read. */
const MOST = 64;

/** Whether the arguments are those of an agent's CLI: the program itself, or the script of an interpreter. */
export function isAgentProcess(words: readonly string[], { programs, packages }: Programs): boolean {
  return words
    .slice(0, 2)
    .some(
      (word) =>
        programs.includes(word.slice(word.lastIndexOf("/") + 1)) ||
        packages.some((name) => word.includes(`/node_modules/${name}/`)),
    );
}

/**
 * Pure. `chain`: the arguments of the processes above a hook, nearest first. An agent and its wrapper are next to each other;
 * between one agent and another is the shell of a tool.
 */
export function isNestedChain(chain: readonly (readonly string[])[], agents: readonly Programs[]): boolean {
  let groups = 0;
  let wasAgent = false;
  for (const words of chain) {
    if (words.some((word) => KEEPER.test(word))) break;
    const isAgent = agents.some((agent) => isAgentProcess(words, agent));
    if (isAgent && !wasAgent) groups += 1;
    wasAgent = isAgent;
  }
  return groups > 1;
}

/** Whether the process whose parent is `pid` is nested. False where there is no /proc. */
export function isNested(pid: number, agents: readonly Programs[]): boolean {
  const chain: string[][] = [];
  for (let current = pid; current > 1 && chain.length < MOST; ) {
    const parent = readProcessFields(current)?.[1];
    if (parent === undefined) break;
    chain.push(readArguments(current));
    current = Number(parent);
  }
  return isNestedChain(chain, agents);
}

/** Empty for a process that is gone. */
export function readArguments(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}
