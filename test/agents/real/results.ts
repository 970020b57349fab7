// What the tests with real CLIs found, one file per agent and version next to the installed CLIs. report.ts makes the
// tables of docs/agents.md from them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CACHE, VERSIONS } from "./install.ts";

/** A run with fewer kills does not replace the result of one with more. */
export const FULL_ROUNDS = 20;

/** Rows of the tables. */
export const KILLS = "killed at random moments";
export const RESTART = "without Lazarus: the same command again";
export const CONTINUED = "without Lazarus: the CLI's own way to go on";
export const TMUX = "without Lazarus: tmux-resurrect";
export const RESTORE = "restored to step 2 and revived, undone";

export type Results = Readonly<Record<string, string>>;

function resultsFile(agent: string): string {
  return join(CACHE, "results", `${agent}-${VERSIONS[agent]!.version}.json`);
}

export function readResults(agent: string): Results {
  const path = resultsFile(agent);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Results) : {};
}

/** One cell of a table. */
export function keepResult(agent: string, row: string, outcome: string): void {
  const path = resultsFile(agent);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ ...readResults(agent), [row]: outcome }, null, 2)}\n`);
  process.stderr.write(`${agent}: ${row}: ${outcome}\n`);
}
