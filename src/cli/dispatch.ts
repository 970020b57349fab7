// Finds the command, runs it, and maps every outcome to an exit code. Everything from the process is injected, so that
// tests can run whole command lines in memory.
import { asLazarusError, type LazarusError } from "../platform/errors.ts";
import { nearest } from "../platform/nearest.ts";
import { VERSION } from "../platform/version.ts";
import { CATALOGUE } from "./catalogue.ts";
import type { AnyCommand, CommandInput, PositionalSpec } from "./command.ts";
import { type CliContext, type ContextParts, createContext, type GlobalValues } from "./context.ts";
import { findCommand, subcommands } from "./find-command.ts";
import { type ParsedLine, parseLine, usage } from "./parse.ts";
import { createPainter, escapeControls, formatJson } from "./render/paint.ts";
import { OutputClosed, type Terminal } from "./terminal.ts";

export async function runLine(words: readonly string[], parts: ContextParts): Promise<number> {
  try {
    return await dispatch(words, parts);
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    const failure = asLazarusError(error, "lazarus");
    report(failure, words, parts);
    return failure.exitCode;
  }
}

function report(failure: LazarusError, words: readonly string[], parts: ContextParts): void {
  const end = words.indexOf("--");
  const ours = end < 0 ? words : words.slice(0, end);
  try {
    // With --json a failure is also exactly one document on stdout.
    if (ours.includes("--json"))
      parts.terminal.out(`${formatJson({ schema: "lazarus.error/1", ...failure.toJSON() })}\n`);
    else printError(failure, parts);
  } catch (error) {
    // stdout is closed; the exit code still reports the failure.
    if (!(error instanceof OutputClosed)) throw error;
  }
}

async function dispatch(words: readonly string[], parts: ContextParts): Promise<number> {
  const [first = "--help"] = words;
  if (first === "--version" || first === "-V" || first === "version") {
    const json = words.includes("--json");
    parts.terminal.out(
      json ? `${JSON.stringify({ schema: "lazarus.version/1", version: VERSION })}\n` : `${VERSION}\n`,
    );
    return 0;
  }
  if (first === "--help" || first === "-h" || first === "help") return help(words.slice(1), parts.terminal);
  const found = findCommand(CATALOGUE, words);
  if (found === undefined) {
    const wantsHelp = words[1] === "--help" || words[1] === "-h";
    if (wantsHelp && subcommands(CATALOGUE, first).length > 0) return help([first], parts.terminal);
    throw unknownCommand(words);
  }
  const { command } = await found.entry.load();
  if (command.raw) return (await command.run(createContext(parts, NO_GLOBALS), rawInput(found.rest))) ?? 0;
  const line = parseLine(found.name, command, found.rest);
  if (line.globals.help) return help([found.name], parts.terminal);
  const context = createContext(parts, line.globals);
  return (await command.run(context, await withMissionHere(context, command, found, line))) ?? 0;
}

/** Replaces `.`, or `.` of `.:CHECKPOINT`, or an omitted mission, by the mission of the current directory. */
async function withMissionHere(
  context: CliContext,
  command: AnyCommand,
  { name, rest }: { readonly name: string; readonly rest: readonly string[] },
  { input, missing }: ParsedLine,
): Promise<CommandInput> {
  const { mission } = input.args as { readonly mission?: string };
  const [first, ...others]: readonly PositionalSpec[] = command.positionals;
  if (mission === undefined || first?.name !== "mission" || !first.here) return input;
  const isHere = mission === "." || mission.startsWith(".:");
  if (!isHere && others.length === 0) return input;
  const { isOmitted, missionAtHere, missionHere } = await import("./here.ts");
  if (isHere) {
    if (missing !== undefined && missionAtHere(context) === undefined)
      throw usage(name, `missing argument: ${missing}`);
    return { ...input, args: { ...input.args, mission: missionHere(context) + mission.slice(1) } };
  }
  // With too many words, no mission was omitted.
  const isFull = others.every((spec) => !spec.variadic && input.args[spec.name as never] !== undefined);
  const isOther = others[0]?.looksLike?.test(mission) ?? true;
  if (isFull || !isOther || !isOmitted(context, mission)) return input;
  const line = parseLine(name, command, [".", ...rest]);
  return { ...line.input, args: { ...line.input.args, mission: missionHere(context) } };
}

const NO_GLOBALS: GlobalValues = { json: false, config: undefined, quiet: false, help: false };

function rawInput(rest: readonly string[]): CommandInput {
  return { args: {}, options: {}, rest };
}

async function help(words: readonly string[], terminal: Terminal): Promise<number> {
  const { commandHelp, overview } = await import("./help.ts");
  const name = words.join(" ");
  const entry = Object.hasOwn(CATALOGUE, name) ? CATALOGUE[name] : undefined;
  if (name === "") terminal.out(overview(VERSION));
  else if (entry) terminal.out(commandHelp(name, (await entry.load()).command));
  else if (subcommands(CATALOGUE, name).length > 0) {
    for (const each of subcommands(CATALOGUE, name))
      terminal.out(`lazarus ${each}: ${CATALOGUE[each]!.summary}\n`);
  } else throw unknownCommand(words);
  return 0;
}

function unknownCommand(words: readonly string[]): LazarusError {
  const [first = "", second] = words;
  const below = subcommands(CATALOGUE, first);
  if (below.length > 0) {
    const list = below.map((name) => name.slice(first.length + 1)).join(", ");
    return usage(
      first,
      second === undefined || second.startsWith("-")
        ? `missing subcommand: lazarus ${first} has: ${list}`
        : `unknown subcommand ${JSON.stringify(second)}; lazarus ${first} has: ${list}`,
    );
  }
  if (first.startsWith("-")) {
    return usage(
      "",
      `unexpected option ${JSON.stringify(first.slice(0, 80))}: put options after the command`,
    );
  }
  const firsts = [...new Set(Object.keys(CATALOGUE).map((name) => name.split(" ")[0]!))];
  const close = nearest(first, firsts);
  return usage(
    "",
    `unknown command ${JSON.stringify(first.slice(0, 80))}${close ? `; did you mean ${close}?` : ""}`,
  );
}

function printError(error: LazarusError, parts: ContextParts): void {
  const { red, dim } = createPainter(parts.surroundings.env, () => parts.terminal.errIsTerminal);
  let text = `${red("error")}: ${escapeControls(error.message)}\n`;
  let cause = error.cause;
  while (cause instanceof Error) {
    // Only unexpected errors show a stack, for the bug report.
    const detail = error.code === "INTERNAL" && cause.stack ? cause.stack : cause.message;
    // An error that only adds a hint repeats the message.
    if (detail !== error.message)
      text += `  ${dim("caused by")}: ${detail.split("\n").map(escapeControls).join("\n")}\n`;
    cause = cause.cause;
  }
  if (error.hint) text += `  ${dim("try")}: ${escapeControls(error.hint)}\n`;
  parts.terminal.err(text);
}
