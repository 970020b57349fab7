// Adapters that a user declares in the config, in the section `agents`: the same information as a built-in adapter, as data. Command
// lines are templates with `{session}`, `{note}` and `{args}`; session files are paths with `{session}` and `{cwd}`.
// Transcripts are not read: such an agent reports what it does with `lazarus hook NAME EVENT`. Pure.
import { basename, dirname, isAbsolute, join } from "node:path";
import {
  findUnknownKeys,
  invalidSetting,
  isPattern,
  readSection,
  type SettingValues,
  setting,
} from "../cell/settings.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { type Adapter, PATTERN_CLASSES, type Place, type SessionReader } from "./adapter.ts";
import { asPrompt } from "./arguments.ts";
import { parsePlainEvent } from "./plain-events.ts";

const words = (description: string) =>
  setting({
    type: (z) => z.array(z.string()).readonly(),
    default: undefined,
    allowed: "a list of words",
    description,
  });
const patterns = (what: string) =>
  setting({
    type: (z) => z.array(z.string().refine(isPattern)).readonly(),
    default: undefined,
    allowed: "a list of regular expressions",
    description: `lines of output that report ${what}`,
  });

export const DECLARED_SETTINGS = {
  programs: words("file names of the program; the name of the section by default"),
  start: words("arguments of a first life that chooses its session; {args} is what the user typed"),
  resume: words("arguments of a revival, with {session} and {note}; without it the agent starts over"),
  session_pattern: setting({
    type: (z) => z.string().refine((text) => isPattern(text) && /\([^?]/.test(text)),
    default: undefined,
    allowed: "a regular expression with one group",
    description: "finds the session id in a line of output",
  }),
  session_files: words(
    "files of a session: absolute or ~/ paths with {session} and {cwd}; the last part may have *",
  ),
  quota_patterns: patterns("a used-up quota"),
  overload_patterns: patterns("an overloaded or unreachable provider"),
  auth_patterns: patterns("a login or key that was refused"),
  permanent_patterns: patterns("an error that a retry cannot fix"),
  unknown_session_patterns: patterns("that the session to resume does not exist"),
  exit_zero_means_finished: setting({
    type: (z) => z.boolean(),
    default: true as boolean,
    allowed: "true or false",
    description: "exit code 0 alone proves that the agent has finished",
  }),
};

type Declared = Partial<SettingValues<typeof DECLARED_SETTINGS>>;

/** Throws CONFIG_INVALID for a wrong value. */
export function declaredAdapters(document: JsonObject, file: string | undefined): Adapter[] {
  const where = file ?? "config";
  return Object.entries(sectionOf(document, where)).map(([name, section]) =>
    toAdapter(
      name,
      readSection(DECLARED_SETTINGS, section, `${where}: agents.${name}`),
      `${where}: agents.${name}`,
    ),
  );
}

export function findUnknownAgentKeys(document: JsonObject, file: string | undefined): string[] {
  const where = file ?? "config";
  return Object.entries(sectionOf(document, where)).flatMap(([name, section]) =>
    findUnknownKeys(section, `${where}: agents.${name}`, Object.keys(DECLARED_SETTINGS)),
  );
}

function sectionOf(document: JsonObject, where: string): JsonObject {
  const { agents } = document;
  if (agents === undefined || agents === null) return {};
  if (!isJsonObject(agents)) throw invalidSetting(`${where}: agents`, "an object");
  return agents;
}

function toAdapter(name: string, declared: Declared, where: string): Adapter {
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name))
    throw invalidSetting(where, "a name of lower-case letters, digits, '-' and '_'");
  const { start, resume, session_pattern: pattern } = declared;
  const files = declared.session_files ?? [];
  const wrong = files.find((path) => !isFileTemplate(path));
  if (wrong !== undefined)
    throw invalidSetting(`${where}.session_files`, "a list of absolute or ~/ paths that contain {session}");
  const isPlain = (args: readonly string[], session: string | null) =>
    start === undefined || session === null || args.length === 0;
  return {
    name,
    testedVersion: "",
    programs: declared.programs ?? [name],
    packages: [],
    parse: () => ({ isHeadless: true, prompt: null, session: null, isUtility: false }),
    sessionIds: start?.some((word) => word.includes("{session}")) ? "chosen" : "found",
    isSessionId,
    start: (args, session) => (isPlain(args, session) ? args : fill(start!, args, session!, "")),
    resume: (args, session, note) =>
      resume === undefined || !isSessionId(session) ? null : fill(resume, args, session, asPrompt(note)),
    restart: (args, session) => (isPlain(args, session) ? args : fill(start!, args, session!, "")),
    sessionFiles: (place, session, reader) =>
      isSessionId(session) ? files.flatMap((template) => matching(template, place, session, reader)) : [],
    pathOf: (place, session, file) => {
      if (!isSessionId(session) || file.includes("/")) return null;
      const found = files
        .map((template) => expand(template, place, session))
        .find((path) => globToPattern(basename(path)).test(file));
      return found === undefined ? null : join(dirname(found), file);
    },
    ...(files.length === 0 && { filesAreUnknown: true as const }),
    findSessions: () => [],
    ...(pattern !== undefined && {
      sessionInOutput: (line: string) => {
        const id = new RegExp(pattern).exec(line)?.[1];
        return id !== undefined && isSessionId(id) ? id : null;
      },
    }),
    transcript: {
      position: () => ({ turn: 0, last: null, open: [], isFinished: false, damagedLines: 0 }),
      entries: () => [],
    },
    patterns: Object.fromEntries(PATTERN_CLASSES.map((each) => [each, declared[`${each}_patterns`] ?? []])),
    unknownSession: { exitCodes: [], patterns: declared.unknown_session_patterns ?? [] },
    exitZeroMeansFinished: declared.exit_zero_means_finished ?? true,
    placeholder: null,
    hooks: { perRun: null, parse: parsePlainEvent, install: () => [] },
    credentials: [],
  };
}

/** An id becomes part of a word and of a path: never an option, never a directory. */
function isSessionId(text: string): boolean {
  return /^[A-Za-z0-9][\w.:-]{0,127}$/.test(text) && !text.includes("..");
}

/** `{args}` stands for all words of the user; a value is always part of one word. */
function fill(template: readonly string[], args: readonly string[], session: string, note: string): string[] {
  return template.flatMap((word) =>
    word === "{args}"
      ? args
      : [word.replaceAll(/\{(session|note)\}/g, (_, name) => (name === "note" ? note : session))],
  );
}

function isFileTemplate(path: string): boolean {
  return (
    (isAbsolute(path) || path.startsWith("~/")) &&
    path.includes("{session}") &&
    !dirname(path).includes("*") &&
    !path.split("/").includes("..")
  );
}

/** `{cwd}` is the directory as one name: with "-" for everything that is not a letter or digit. */
function expand(template: string, { cwd, home }: Place, session: string): string {
  return template
    .replace(/^~(?=\/)/, () => home)
    .replaceAll("{cwd}", () => cwd.replaceAll(/[^A-Za-z0-9]/g, "-"))
    .replaceAll("{session}", () => session);
}

function matching(template: string, place: Place, session: string, reader: SessionReader) {
  const path = expand(template, place, session);
  const pattern = globToPattern(basename(path));
  return reader
    .list(dirname(path))
    .filter(({ name, isDirectory }) => !isDirectory && pattern.test(name))
    .map(({ name }) => ({
      path: join(dirname(path), name),
      name,
      kind: name.endsWith(".jsonl") ? ("lines" as const) : ("whole" as const),
    }));
}

function globToPattern(glob: string): RegExp {
  return new RegExp(
    `^${glob
      .split("*")
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^/]*")}$`,
  );
}
