// What a command is: plain data from which parsing, help, completion and typo suggestions all come, plus one `run`.
// The types of the parsed options and positionals follow from that data.
import type { ErrorKind } from "../platform/errors.ts";
import type { CliContext } from "./context.ts";

export interface OptionSpec {
  readonly type: "flag" | "text" | "texts" | "number";
  readonly summary: string;
  readonly short?: string;
  /** What stands for the value in help: `--status TEXT`. */
  readonly value?: string;
  readonly choices?: readonly string[];
}

export interface PositionalSpec {
  readonly name: string;
  readonly summary: string;
  readonly optional?: boolean;
  /** Takes all that is left; last one only. */
  readonly variadic?: boolean;
}

type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type OptionValue<O extends OptionSpec> = O["type"] extends "flag"
  ? boolean
  : O["type"] extends "texts"
    ? readonly string[]
    : (O["type"] extends "number" ? number : string) | undefined;

export type OptionValues<O extends OptionSpecs> = { readonly [K in keyof O]: OptionValue<O[K]> };

type PositionalValues<P extends readonly PositionalSpec[]> = {
  readonly [E in P[number] as E["name"]]: E["variadic"] extends true
    ? readonly string[]
    : E["optional"] extends true
      ? string | undefined
      : string;
};

export interface Command<
  O extends OptionSpecs = OptionSpecs,
  P extends readonly PositionalSpec[] = readonly PositionalSpec[],
> {
  readonly positionals: P;
  readonly options: O;
  /** A paragraph for the help page. */
  readonly about: string;
  /** Lines that can be pasted, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** The kinds of failure this command can end with, beside usage and config. */
  readonly exits: readonly ErrorKind[];
  /** Set when everything after `--` belongs to another program; says what it is in the usage line. */
  readonly passthrough?: string;
  /** Returns the exit code; nothing means 0. */
  run(context: CliContext, input: CommandInput<O, P>): Promise<number | undefined> | number | undefined;
}

export interface CommandInput<
  O extends OptionSpecs = OptionSpecs,
  P extends readonly PositionalSpec[] = readonly PositionalSpec[],
> {
  readonly options: OptionValues<O>;
  readonly args: PositionalValues<P>;
  /** What stood after `--`. */
  readonly rest: readonly string[];
}

/** Any command, its own types forgotten: what the table of commands holds. */
// biome-ignore lint/suspicious/noExplicitAny: the parser makes exactly what the command's own data asks for.
export type AnyCommand = Command<any, any>;

export function defineCommand<const O extends OptionSpecs, const P extends readonly PositionalSpec[]>(
  command: Command<O, P>,
): Command<O, P> {
  return command;
}
