// The shape of a command: plain data that drives parsing, help, completion and typo suggestions, plus one `run`. The types
// of the parsed options and arguments are inferred from that data.
import type { ErrorKind } from "../platform/errors.ts";
import type { CliContext } from "./context.ts";

export interface OptionSpec {
  readonly type: "flag" | "text" | "texts" | "number";
  readonly summary: string;
  readonly short?: string;
  /** Placeholder of the value in help: `--status TEXT`. */
  readonly value?: string;
  readonly choices?: readonly string[];
}

export interface PositionalSpec {
  readonly name: string;
  readonly summary: string;
  readonly optional?: boolean;
  /**
   * An existing mission, the first argument: `.` is the one of the current directory, which is also the default of a required
   * argument, even if others follow.
   */
  readonly here?: boolean;
  /** What its words look like: another word in front of it is a mission, whether or not there is one of that name. */
  readonly looksLike?: RegExp;
  /** Takes all remaining arguments; only for the last one. */
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
  /** A paragraph of the help page. */
  readonly about: string;
  /** Lines that can be pasted, each with a description. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** The kinds of failure this command can report, besides usage and config. */
  readonly exits: readonly ErrorKind[];
  /** Set when everything after `--` is passed to another program; its placeholder in the usage line. */
  readonly passthrough?: string;
  /** Every word after the command's name is passed on in `rest`: none is parsed as an option of Lazarus, not even --help. */
  readonly raw?: boolean;
  /** Returns the exit code; undefined means 0. */
  run(context: CliContext, input: CommandInput<O, P>): Promise<number | undefined> | number | undefined;
}

export interface CommandInput<
  O extends OptionSpecs = OptionSpecs,
  P extends readonly PositionalSpec[] = readonly PositionalSpec[],
> {
  readonly options: OptionValues<O>;
  readonly args: PositionalValues<P>;
  /** The words after `--`. */
  readonly rest: readonly string[];
}

/** A command without its specific types, as the catalogue holds it. */
// biome-ignore lint/suspicious/noExplicitAny: the parser produces what the command's data declares.
export type AnyCommand = Command<any, any>;

export function defineCommand<const O extends OptionSpecs, const P extends readonly PositionalSpec[]>(
  command: Command<O, P>,
): Command<O, P> {
  return command;
}

/** An existing mission: by default that of the current directory. */
export const MISSION_ARGUMENT = {
  name: "mission",
  summary: "id of the mission (default: of this directory)",
  here: true,
} as const satisfies PositionalSpec;

/** An optional argument that names a checkpoint. */
export const CHECKPOINT_ARGUMENT = {
  name: "checkpoint",
  summary: "id or a part of it, latest, or a time: 10m, 14:30 (default latest)",
  optional: true,
} as const satisfies PositionalSpec;
