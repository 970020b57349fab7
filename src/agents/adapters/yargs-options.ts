// What the command lines of Gemini CLI and Qwen Code, a fork of it, have in common: `-p` or `-i PROMPT` or positional words,
// `--session-id UUID`, `--resume UUID`.
import type { Adapter, Invocation } from "../adapter.ts";
import {
  asPrompt,
  type Grammar,
  hasOption,
  isUuid,
  optionsOnly,
  optionValue,
  positionals,
  readWords,
  withNote,
} from "../arguments.ts";

export interface Family {
  readonly options: Grammar;
  readonly commands: readonly string[];
  /** Options with which there is no conversation of this directory. */
  readonly elsewhere: readonly string[];
  /** Words without an option are a one-shot prompt. */
  readonly isPositionalHeadless: boolean;
}

const HEADLESS = ["-p", "--prompt"];
const INTERACTIVE = ["-i", "--prompt-interactive"];
const SESSION_OPTIONS = [
  "--session-id",
  "-r",
  "--resume",
  "-c",
  "--continue",
  "--fork-session",
  "--session-file",
];

export function commandLines(family: Family): Pick<Adapter, "parse" | "start" | "resume" | "restart"> {
  const parse = (args: readonly string[]): Invocation => {
    const words = readWords(args, family.options);
    const query = positionals(words);
    const prompt =
      optionValue(words, ...HEADLESS, ...INTERACTIVE) ?? (query.length > 0 ? query.join(" ") : null);
    const isPositional = query.length > 0 && family.isPositionalHeadless && !hasOption(words, ...INTERACTIVE);
    return {
      isHeadless: hasOption(words, ...HEADLESS) || isPositional,
      prompt,
      session: chosenSession(words),
      isUtility: hasOption(words, ...family.elsewhere) || family.commands.includes(query[0] ?? ""),
    };
  };
  /** The prompt is passed as the user passed it; an interactive session without one gets it with `-i`. */
  const rewrite = (
    args: readonly string[],
    session: readonly string[],
    prompt: string,
  ): readonly string[] => {
    const words = readWords(args, family.options);
    const kept = optionsOnly(words, ...SESSION_OPTIONS, ...HEADLESS, ...INTERACTIVE);
    if (hasOption(words, ...HEADLESS)) return [...kept, ...session, "-p", prompt];
    const isPositional = positionals(words).length > 0 && !hasOption(words, ...INTERACTIVE);
    return isPositional && session.length > 0
      ? [...kept, ...session, prompt]
      : [...kept, ...session, "-i", prompt];
  };
  return {
    parse,
    start: (args, session) => {
      const { isUtility, session: chosen } = parse(args);
      return isUtility || chosen !== null || session === null ? args : ["--session-id", session, ...args];
    },
    resume: (args, session, note) =>
      parse(args).isUtility || !isUuid(session) ? null : rewrite(args, ["--resume", session], asPrompt(note)),
    restart: (args, session, note) => {
      const { isUtility, prompt } = parse(args);
      return isUtility
        ? args
        : rewrite(args, session === null ? [] : ["--session-id", session], withNote(note, prompt));
    },
  };
}

function chosenSession(words: ReturnType<typeof readWords>): Invocation["session"] {
  const id = optionValue(words, "--session-id");
  if (id !== undefined) return { id };
  if (hasOption(words, "--fork-session")) return null;
  const resumed = optionValue(words, "-r", "--resume");
  // "latest", a number or `--continue`: the session is unknown until the agent reports it.
  if (resumed !== undefined && isUuid(resumed)) return { id: resumed };
  return hasOption(words, "-r", "--resume", "-c", "--continue", "--session-file") ? "newest" : null;
}
