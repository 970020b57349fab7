// The command lines that a user gives for a revival, and their placeholders. A value is always part of one argument and
// can never become an option or the program: part of it is written by the agent (INV-11). No shell is involved. Pure.

export interface Placeholders {
  readonly mission: string;
  readonly cell: string;
  readonly checkpoint: string;
  readonly epoch: string;
  /** Written by the agent; empty when it has stored none. */
  readonly session: string;
}

const PLACEHOLDER = /\{(mission|cell|checkpoint|epoch|session)\}/g;
/** A word that starts with a placeholder, possibly after dashes, but has more in it. */
const STARTS_WITH_PLACEHOLDER =
  /^(?:-+\{(?:mission|cell|checkpoint|epoch|session)\}|\{(?:mission|checkpoint|epoch|session)\}.)/s;

/** Why a command line with placeholders is refused; undefined when it can be used. */
export function findTemplateProblem(template: readonly string[]): string | undefined {
  const [program = ""] = template;
  if (program === "") return "the command is empty";
  // The cell is an absolute path, so it cannot be mistaken for an option or for another program.
  if (program.replaceAll("{cell}", "").match(PLACEHOLDER))
    return `the program ${JSON.stringify(program)} contains a placeholder`;
  const word = template.find((each) => STARTS_WITH_PLACEHOLDER.test(each));
  if (word === undefined) return undefined;
  return `the word ${JSON.stringify(word)} starts with a placeholder; make it a separate word`;
}

export type Filled = { readonly command: readonly string[] } | { readonly refused: string };

/** Replaces the placeholders. Refused when a value is missing or starts with a dash; the caller uses the start command. */
export function fillPlaceholders(template: readonly string[], values: Placeholders): Filled {
  const problem = findTemplateProblem(template);
  if (problem !== undefined) return { refused: problem };
  for (const [, name] of template.join("\n").matchAll(PLACEHOLDER)) {
    const value = values[name as keyof Placeholders];
    if (value === "") return { refused: `there is no {${name}}` };
    if (value.startsWith("-")) return { refused: `the value of {${name}} starts with a dash` };
  }
  const fill = (word: string) => word.replaceAll(PLACEHOLDER, (_, name: keyof Placeholders) => values[name]);
  return { command: template.map(fill) };
}

/** Splits at blanks and honors quotes. Not a shell: nothing is expanded. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double?.replaceAll(/\\(.)/g, "$1") ?? single ?? plain ?? "",
  );
}
