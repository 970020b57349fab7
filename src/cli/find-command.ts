// Looks commands up in a catalogue by the words of a command line.
import type { AnyCommand } from "./command.ts";

export interface CatalogueEntry {
  readonly group: string;
  readonly summary: string;
  readonly hidden?: boolean;
  /** Listed by name only in `lazarus --help`. */
  readonly rare?: boolean;
  load(): Promise<{ command: AnyCommand }>;
}

/** Keys are command names; a name of two words is a sub-command: `job beat`. */
export type Catalogue = Readonly<Record<string, CatalogueEntry>>;

/** Splits the words of a command line into the command's name and its arguments. */
export function findCommand(
  catalogue: Catalogue,
  words: readonly string[],
): { name: string; entry: CatalogueEntry; rest: string[] } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(" ");
    const entry = Object.hasOwn(catalogue, name) ? catalogue[name] : undefined;
    if (entry && words.length >= length) return { name, entry, rest: words.slice(length) };
  }
  return undefined;
}

/** The visible sub-commands of a first word: `job` → ["job beat", "job check"]. */
export function subcommands(catalogue: Catalogue, first: string): string[] {
  return Object.entries(catalogue)
    .filter(([name, { hidden }]) => name.startsWith(`${first} `) && !hidden)
    .map(([name]) => name);
}
