// Looks commands up in the table by the words of a command line.
import { CATALOGUE, type CatalogueEntry } from "./catalogue.ts";

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

/** Every command that people call. */
export function commandNames(): string[] {
  return Object.keys(CATALOGUE).filter((name) => !CATALOGUE[name]!.hidden);
}
