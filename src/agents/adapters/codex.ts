// Codex. It chooses its own ids: on stderr, in the first line of `--json`, or in the name of the newest rollout of the
// directory. A call is in the transcript before it runs. The recorded process is a wrapper around the real one. Hooks run
// only if they are trusted (codex-hooks).
import { join } from "node:path";
import type { Adapter, FailurePatterns, Invocation, Place, SessionFile, SessionReader } from "../adapter.ts";
import {
  asPrompt,
  type Grammar,
  hasOption,
  isUuid,
  optionsOnly,
  readWords,
  type Word,
  withNote,
} from "../arguments.ts";
import { CLAUDE_MEANINGS, hookParser, hooksInSettings } from "../claude-style-hooks.ts";
import { NETWORK } from "../failure-patterns.ts";
import { MCP_VARIABLES } from "../mcp-servers.ts";
import { toolReports } from "../tool-reports.ts";
import { DIALECT, trustedHooks } from "./codex-hooks.ts";
import { codexTranscript } from "./codex-transcript.ts";

const IMAGES = ["-i", "--image"];
const OPTIONS: Grammar = {
  one: [
    ...["-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-m", "--model"],
    ...["--local-provider", "-p", "--profile", "-s", "--sandbox", "-C", "--cd", "--add-dir", "-a"],
    ...[
      "--ask-for-approval",
      "--thread-source",
      "--cyber-access-program",
      "--output-schema",
      "--color",
      "-o",
    ],
    ...["--output-last-message"],
  ],
  many: IMAGES,
};
const COMMANDS = [
  ...[
    "agents",
    "review",
    "login",
    "logout",
    "mcp",
    "plugin",
    "app-server",
    "remote-control",
    "completion",
    "update",
  ],
  ...[
    "doctor",
    "sandbox",
    "debug",
    "apply",
    "a",
    "queue",
    "archive",
    "delete",
    "migrate-rollouts",
    "migrate-nfs-db",
  ],
  ...["unarchive", "cloud", "exec-server", "features", "help"],
];
const ELSEWHERE = ["-h", "--help", "-V", "--version", "--ephemeral", "--remote", "--worktree"];
/** Options that only `resume`, or only the interactive `resume`, accepts. */
const RESUME_OPTIONS = ["--last", "--all", "--include-non-interactive"];

interface Line extends Invocation {
  readonly words: readonly Word[];
}

function readLine(args: readonly string[]): Line {
  const words = readWords(args, OPTIONS);
  const plain = words.filter(({ role }) => role === "positional");
  const isHeadless = plain[0]?.text === "exec" || plain[0]?.text === "e";
  const rest = isHeadless ? plain.slice(1) : plain;
  const verb = rest[0]?.text ?? "";
  const isResume = verb === "resume" || verb === "fork";
  const [id, prompt] = isResume ? resumed(words, rest.slice(1)) : [undefined, rest[0]?.text];
  const isNewest = isResume && (id === undefined || !isUuid(id));
  return {
    isHeadless,
    prompt: prompt === undefined || prompt === "-" ? null : prompt,
    // A fork gets its own id.
    session: verb === "fork" || !isResume ? null : isNewest ? "newest" : { id: id! },
    isUtility:
      hasOption(words, ...ELSEWHERE) ||
      COMMANDS.includes(plain[0]?.text ?? "") ||
      (isHeadless && ["review", "help"].includes(verb)),
    words,
  };
}

/** With `--last`, the first word is the prompt. */
function resumed(
  words: readonly Word[],
  [first, second]: readonly Word[],
): [string | undefined, string | undefined] {
  return hasOption(words, "--last") ? [undefined, first?.text] : [first?.text, second?.text];
}

const PATTERNS: FailurePatterns = {
  quota: [
    "^error: (?:exceeded retry limit, last|unexpected) status:? 429\\b",
    "^error: you've hit your usage limit",
    "^error: quota exceeded",
  ],
  overload: [
    "^error: (?:exceeded retry limit, last|unexpected) status:? 5\\d\\d\\b",
    `^error: .*(?:stream disconnected|error sending request|${NETWORK})`,
  ],
  auth: [
    "^error: (?:exceeded retry limit, last|unexpected) status:? 40[13]\\b",
    "^error: missing environment variable: `\\w*key\\w*`",
    "^not logged in\\b",
  ],
  permanent: ["^error: codex ran out of room in the model's context window"],
};

function configDirectory({ env, home }: Place): string {
  return env.CODEX_HOME || join(home, ".codex");
}

/** `2026/11/18/rollout-2026-11-18T06-55-35-UUID.jsonl` */
const FILE_NAME =
  /^\d{4}\/\d{2}\/\d{2}\/rollout-[0-9T-]+?-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/;

/** All rollouts, newest day first; `isWanted` stops the walk. */
function rollouts(
  place: Place,
  reader: SessionReader,
  isWanted: (day: string) => boolean,
): { name: string; id: string }[] {
  const root = join(configDirectory(place), "sessions");
  const numbers = (directory: string) =>
    reader
      .list(directory)
      .map(({ name }) => name)
      .filter((name) => /^\d{2,4}$/.test(name))
      .sort()
      .reverse();
  return numbers(root).flatMap((year) =>
    numbers(join(root, year)).flatMap((month) =>
      numbers(join(root, year, month))
        .map((day) => `${year}/${month}/${day}`)
        .filter(isWanted)
        .flatMap((day) => reader.list(join(root, day)).map(({ name }) => `${day}/${name}`))
        .flatMap((name) => {
          const id = FILE_NAME.exec(name)?.[1];
          return id === undefined ? [] : [{ name, id }];
        }),
    ),
  );
}

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  if (!isUuid(session)) return [];
  return rollouts(place, reader, () => true)
    .filter(({ id }) => id === session)
    .map(({ name }) => ({ path: join(configDirectory(place), "sessions", name), name, kind: "lines" }));
}

const DAY_MS = 24 * 60 * 60 * 1000;
const HEAD_BYTES = 16 * 1024;

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  // Directories are named by local time.
  const from = new Date(Math.max(0, sinceMs - DAY_MS)).toISOString().slice(0, 10).replaceAll("-", "/");
  return rollouts(place, reader, (day) => day >= from)
    .map(({ name, id }) => {
      const path = join(configDirectory(place), "sessions", name);
      return { id, path, atMs: reader.createdMs(path) ?? 0 };
    })
    .filter(({ atMs }) => atMs >= sinceMs)
    .filter(({ path }) => {
      const cwd = /"cwd":("(?:[^"\\]|\\.)*")/.exec(reader.head(path, HEAD_BYTES) ?? "")?.[1];
      return cwd !== undefined && JSON.parse(cwd) === place.cwd;
    })
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ id }) => id);
}

export const codex: Adapter = {
  name: "codex",
  testedVersion: "0.169.0",
  programs: ["codex"],
  packages: ["@openai/codex"],
  parse: (args) => {
    const { isHeadless, prompt, session, isUtility } = readLine(args);
    return { isHeadless, prompt, session, isUtility };
  },
  sessionIds: "found",
  isSessionId: isUuid,
  start: (args) => args,
  resume: (args, session, note) => {
    const line = readLine(args);
    if (line.isUtility || !isUuid(session)) return null;
    // All options are accepted before `resume`. The images belong to the first prompt.
    const options = optionsOnly(line.words, ...RESUME_OPTIONS, ...IMAGES);
    return [...(line.isHeadless ? ["exec"] : []), ...options, "resume", session, asPrompt(note)];
  },
  restart: (args, _, note) => {
    const line = readLine(args);
    if (line.isUtility) return args;
    // Images take any number of words, so the prompt comes first.
    const options = optionsOnly(line.words, ...RESUME_OPTIONS);
    return [...(line.isHeadless ? ["exec"] : []), withNote(note, line.prompt), ...options];
  },
  sessionFiles,
  pathOf: (place, session, name) =>
    isUuid(session) && FILE_NAME.exec(name)?.[1] === session
      ? join(configDirectory(place), "sessions", name)
      : null,
  findSessions,
  sessionInOutput: (line) => {
    const id =
      /^session id: (\S+)$/.exec(line)?.[1] ??
      /^\{"type":"thread\.started","thread_id":"([^"]+)"/.exec(line)?.[1];
    return id !== undefined && isUuid(id) ? id : null;
  },
  transcript: codexTranscript,
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^error: .*no rollout found for thread id\\b"] },
  exitZeroMeansFinished: true,
  placeholder: "aborted",
  hooks: {
    perRun: (command, directory) => {
      const calls = toolReports("codex", command, directory, {
        session: "session_id",
        ended: { lastId: "tool_use_id" },
      });
      return { args: trustedHooks(command, calls), env: {}, files: [calls.file] };
    },
    parse: hookParser({ ...CLAUDE_MEANINGS, "agent-turn-complete": "turn-end" }, PATTERNS),
    install: (place, command) => [
      hooksInSettings(join(configDirectory(place), "hooks.json"), "codex", command, DIALECT),
    ],
  },
  mcp: ([program, ...args]) => ({
    args: [
      ...["-c", `mcp_servers.lazarus.command=${JSON.stringify(program)}`],
      ...["-c", `mcp_servers.lazarus.args=${JSON.stringify(args)}`],
      ...["-c", `mcp_servers.lazarus.env_vars=${JSON.stringify(MCP_VARIABLES)}`],
    ],
    env: {},
  }),
  credentials: [".codex/auth.json"],
};
