// The table of commands: name, group, one line about each, and how to load it. Only the command that runs is loaded,
// but for the two that agents and cron jobs call all day: they come with the core, which saves a file each (0.5 ms).
import type { AnyCommand } from "./command.ts";
import * as heartbeat from "./commands/heartbeat.ts";
import * as jobBeat from "./commands/job-beat.ts";

export const GROUPS = {
  cells: "Cells and their heartbeat",
  records: "What happened",
  setup: "Set-up and help",
} as const;

export interface CatalogueEntry {
  readonly group: keyof typeof GROUPS;
  readonly summary: string;
  readonly hidden?: boolean;
  load(): Promise<{ command: AnyCommand }>;
}

/** A name of two words is a sub-command: `job beat`. */
export const CATALOGUE: Readonly<Record<string, CatalogueEntry>> = {
  init: { group: "cells", summary: "make a cell for a mission", load: () => import("./commands/init.ts") },
  heartbeat: {
    group: "cells",
    summary: "say that a mission is alive",
    load: async () => heartbeat,
  },
  scan: { group: "cells", summary: "state of every cell", load: () => import("./commands/scan.ts") },
  "job beat": { group: "cells", summary: "say that a job ran", load: async () => jobBeat },
  "job check": {
    group: "cells",
    summary: "list jobs whose pulse is stale",
    load: () => import("./commands/job-check.ts"),
  },
  events: {
    group: "records",
    summary: "the log of what happened",
    load: () => import("./commands/events.ts"),
  },
  demo: {
    group: "setup",
    summary: "a guided try-out in a temporary home",
    load: () => import("./commands/demo.ts"),
  },
  doctor: {
    group: "setup",
    summary: "check that this machine can keep the promises",
    load: () => import("./commands/doctor.ts"),
  },
  config: {
    group: "setup",
    summary: "effective settings and where each came from",
    load: () => import("./commands/config.ts"),
  },
  completion: {
    group: "setup",
    summary: "completions for bash, zsh or fish",
    load: () => import("./commands/completion.ts"),
  },
  complete: {
    group: "setup",
    summary: "candidates for a shell",
    hidden: true,
    load: () => import("./commands/complete.ts"),
  },
};

/** Splits the words of a command line into the command's name and the rest. */
export function findCommand(
  words: readonly string[],
): { name: string; entry: CatalogueEntry; rest: string[] } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(" ");
    const entry = Object.hasOwn(CATALOGUE, name) ? CATALOGUE[name] : undefined;
    if (entry && words.length >= length) return { name, entry, rest: words.slice(length) };
  }
  return undefined;
}

/** The sub-commands of a first word: `job` → ["job beat", "job check"]. */
export function subcommands(first: string): string[] {
  return Object.keys(CATALOGUE).filter((name) => name.startsWith(`${first} `));
}
