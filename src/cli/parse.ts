// Parses the words of a command line into a command's typed input. Pure. Node's parseArgs does the tokenizing; commander
// would cost 10 of the 16 ms that a hot-path command may add.
import { parseArgs } from "node:util";
import { LazarusError } from "../platform/errors.ts";
import { nearest } from "../platform/nearest.ts";
import type { AnyCommand, CommandInput, OptionSpec, PositionalSpec } from "./command.ts";
import type { GlobalValues } from "./context.ts";

/** Options that every command takes. */
export const GLOBAL_OPTIONS = {
  json: { type: "flag", summary: "print one JSON document on stdout" },
  config: { type: "text", value: "FILE", summary: "use this config file" },
  quiet: { type: "flag", short: "q", summary: "print only warnings and errors on stderr" },
  help: { type: "flag", short: "h", summary: "show this help" },
} as const satisfies Record<string, OptionSpec>;

export interface ParsedLine {
  readonly globals: GlobalValues;
  readonly input: CommandInput;
  /** The argument that is missing unless the mission was omitted. */
  readonly missing?: string | undefined;
}

export function parseLine(name: string, command: AnyCommand, words: readonly string[]): ParsedLine {
  const specs: Record<string, OptionSpec> = { ...GLOBAL_OPTIONS, ...command.options };
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];
  const rest: string[] = [];
  let ended = false;
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(specs).map(([key, spec]) => [
        key,
        {
          type: spec.type === "flag" ? "boolean" : "string",
          ...(spec.short ? { short: spec.short } : {}),
        } as const,
      ]),
    ),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  for (const token of tokens) {
    if (token.kind === "option-terminator") ended = true;
    else if (token.kind === "positional")
      (ended && command.passthrough ? rest : positionals).push(token.value);
    else readOption(name, specs, token, values);
  }
  for (const [key, spec] of Object.entries(specs)) {
    values[key] ??= spec.type === "flag" ? false : spec.type === "texts" ? [] : undefined;
  }
  const globals = values as unknown as GlobalValues;
  if (globals.help) return { globals, input: { options: values as never, args: {}, rest } };
  const missing = findMissing(command, positionals);
  const args = readPositionals(name, command, missing === undefined ? positionals : [".", ...positionals]);
  return { globals, input: { options: values as never, args: args as never, rest }, missing };
}

/** The last required argument, if one word is missing and the first argument can be omitted. */
function findMissing({ positionals }: AnyCommand, words: readonly string[]): string | undefined {
  const [first, ...others]: readonly PositionalSpec[] = positionals;
  const required = others.filter(({ optional }) => !optional);
  const canBeHere = first?.here && !first.optional && words.length > 0;
  return canBeHere && words.length === required.length ? required.at(-1)?.name : undefined;
}

function readOption(
  name: string,
  specs: Record<string, OptionSpec>,
  token: { readonly name: string; readonly rawName: string; readonly value?: string | undefined },
  values: Record<string, unknown>,
): void {
  const { name: key, value } = token;
  const spec = Object.hasOwn(specs, key) ? specs[key] : undefined;
  if (spec === undefined) {
    const close = nearest(key, Object.keys(specs));
    throw usage(
      name,
      `unknown option ${printable(token.rawName)}${close ? `; did you mean --${close}?` : ""}`,
    );
  }
  if (spec.type === "flag") {
    if (value !== undefined) throw usage(name, `option --${key} takes no value`);
    values[key] = true;
    return;
  }
  if (value === undefined)
    throw usage(name, `option --${key} needs a value: --${key} ${spec.value ?? "VALUE"}`);
  if (spec.choices && !spec.choices.includes(value)) {
    throw usage(
      name,
      `invalid value ${printable(value)} for --${key}; expected one of: ${spec.choices.join(", ")}`,
    );
  }
  if (spec.type === "texts") values[key] = [...((values[key] as string[] | undefined) ?? []), value];
  else if (spec.type === "number") values[key] = readNumber(name, key, value);
  else values[key] = value;
}

function readNumber(name: string, key: string, value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number) || number < 0) {
    throw usage(name, `invalid value ${printable(value)} for --${key}; expected a number, 0 or more`);
  }
  return number;
}

function readPositionals(
  name: string,
  command: AnyCommand,
  words: readonly string[],
): Record<string, unknown> {
  const args: Record<string, unknown> = {};
  let taken = 0;
  for (const spec of command.positionals) {
    if (spec.variadic) {
      args[spec.name] = words.slice(taken);
      taken = words.length;
      if (!spec.optional && (args[spec.name] as string[]).length === 0)
        throw usage(name, `missing argument: ${spec.name}`);
    } else {
      const value = words[taken] ?? (spec.here && !spec.optional ? "." : undefined);
      if (value === undefined && !spec.optional) throw usage(name, `missing argument: ${spec.name}`);
      args[spec.name] = value;
      taken += 1;
    }
  }
  const extra = words[taken];
  if (extra !== undefined) {
    const advice = command.passthrough ? "; put the command after --" : "";
    throw usage(name, `unexpected argument ${printable(extra)}${advice}`);
  }
  return args;
}

export function usage(name: string, message: string): LazarusError {
  return new LazarusError("USAGE", message, { hint: `lazarus ${name} --help`.replace("  ", " ") });
}

function printable(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
