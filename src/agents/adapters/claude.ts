// Claude Code. The id is chosen at the start; one JSONL per session and one per subagent, below a directory named after the
// working directory. A tool call is in the transcript before it runs. Hooks of a run are passed as a plugin directory: of several
// `--settings` Claude takes only the last, so a second one would replace the user's.
import { join } from "node:path";
import type { Adapter, FailurePatterns, Invocation, Place, SessionFile, SessionReader } from "../adapter.ts";
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
import {
  CLAUDE_MEANINGS,
  type HookDialect,
  hookParser,
  hooksInSettings,
  hooksOf,
} from "../claude-style-hooks.ts";
import { sessionsInDirectory, uuidOfTranscript } from "../directory-sessions.ts";
import { NETWORK, NODE_NETWORK } from "../failure-patterns.ts";
import { mcpServers } from "../mcp-servers.ts";
import { toolReports } from "../tool-reports.ts";
import { claudeTranscript } from "./claude-transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...["--agent", "--agents", "--append-system-prompt", "--append-system-prompt-file", "--autocompact"],
    ...["--debug-file", "--effort", "--environment", "--fallback-model", "--input-format", "--json-schema"],
    ...["--max-budget-usd", "--max-turns", "--model", "-n", "--name", "--output-format", "--permission-mode"],
    ...["--permission-prompt-tool", "--permission-prompts", "--plugin-dir", "--plugin-url"],
    ...["--remote-control-session-name-prefix", "--session-id", "--setting-sources", "--settings"],
    ...["--system-prompt", "--system-prompt-file", "--system-prompt-snapshot"],
  ],
  many: [
    ...[
      "--add-dir",
      "--allowedTools",
      "--allowed-tools",
      "--betas",
      "--disallowedTools",
      "--disallowed-tools",
    ],
    ...["--file", "--mcp-config", "--tools"],
  ],
  maybe: [
    ...[
      "--cloud",
      "-d",
      "--debug",
      "--from-pr",
      "--prompt-suggestions",
      "--remote-control",
      "-r",
      "--resume",
    ],
    ...["--teleport", "-w", "--worktree"],
  ],
};
const COMMANDS = [
  ...[
    "agents",
    "attach",
    "auth",
    "auto-mode",
    "config",
    "doctor",
    "gateway",
    "import",
    "install",
    "kill",
    "logs",
  ],
  ...[
    "mcp",
    "migrate-installer",
    "plugin",
    "plugins",
    "purge",
    "remote-control",
    "respawn",
    "rm",
    "setup-token",
  ],
  ...["stop", "ultrareview", "update", "upgrade"],
];
/** With these, the conversation is elsewhere, belongs to another process, or is not kept. */
const ELSEWHERE = [
  ...["-v", "--version", "-h", "--help", "--bg", "--background", "--cloud", "--desktop", "--environment"],
  ...["--from-pr", "--teleport", "--no-session-persistence", "-w", "--worktree"],
];
const SESSION_OPTIONS = ["--session-id", "-r", "--resume", "-c", "--continue", "--fork-session"];

function parse(args: readonly string[]): Invocation {
  const words = readWords(args, OPTIONS);
  const [prompt = null] = positionals(words);
  return {
    isHeadless: hasOption(words, "-p", "--print"),
    prompt,
    session: chosenSession(words),
    isUtility: hasOption(words, ...ELSEWHERE) || (prompt !== null && COMMANDS.includes(prompt)),
  };
}

function chosenSession(words: ReturnType<typeof readWords>): Invocation["session"] {
  const id = optionValue(words, "--session-id");
  if (id !== undefined) return { id };
  if (hasOption(words, "--fork-session")) return null;
  const resumed = optionValue(words, "-r", "--resume");
  // A picker, a name or `--continue`: the session is unknown until the agent reports it.
  if (resumed !== undefined && isUuid(resumed)) return { id: resumed };
  return hasOption(words, "-r", "--resume", "-c", "--continue") ? "newest" : null;
}

/** Messages come from stdin, which is empty in a later life. */
function readsMessages(args: readonly string[]): boolean {
  return optionValue(readWords(args, OPTIONS), "--input-format") === "stream-json";
}

/** The session option goes before the prompt: an option with any number of values would include it. */
function withSession(args: readonly string[], session: readonly string[], prompt: string): readonly string[] {
  return [...optionsOnly(readWords(args, OPTIONS), ...SESSION_OPTIONS), ...session, prompt];
}

const PATTERNS: FailurePatterns = {
  quota: [
    "^(?:claude ai )?usage limit reached",
    "^you've (?:hit|reached) your (?:[\\w-]+ )*limit",
    "^(?:[\\w-]+ )?limit reached\\b.*\\bresets\\b",
    "^api error: (?:request rejected \\()?429\\b",
  ],
  overload: ["^api error: 5\\d\\d\\b", `^api error\\b.*${NETWORK}`, ...NODE_NETWORK],
  auth: [
    "^failed to authenticate\\b",
    "^not logged in\\b",
    "^invalid api key\\b",
    "^api error: 40[13]\\b",
    "^credit balance is too low",
  ],
  permanent: ["^prompt is too long", "^api error: 400\\b"],
};

function configDirectory({ env, home }: Place): string {
  return env.CLAUDE_CONFIG_DIR || join(home, ".claude");
}

/** Claude adds a hash to a longer name, which cannot be computed here. */
const LONGEST_NAME = 200;

function projectDirectory(place: Place): string | null {
  const name = place.cwd.normalize("NFC").replaceAll(/[^A-Za-z0-9]/g, "-");
  return name.length > LONGEST_NAME ? null : join(configDirectory(place), "projects", name);
}

/** The session's own directory has `subagents/agent-ID.jsonl` and `tool-results/ID.txt`. */
const BELOW_SESSION = /^(?:[\w-][\w.-]*\/){1,2}[\w-][\w.-]*$/;

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  const project = projectDirectory(place);
  if (project === null || !isUuid(session)) return [];
  const main = `${session}.jsonl`;
  if (!reader.list(project).some(({ name }) => name === main)) return [];
  const files: SessionFile[] = [{ path: join(project, main), name: main, kind: "lines" }];
  const visit = (below: string, depth: number) => {
    for (const { name, isDirectory } of reader.list(join(project, below))) {
      const path = `${below}/${name}`;
      if (isDirectory && depth > 0) visit(path, depth - 1);
      else if (!isDirectory && BELOW_SESSION.test(path))
        files.push({
          path: join(project, path),
          name: path,
          kind: name.endsWith(".jsonl") ? "lines" : "whole",
        });
    }
  };
  visit(session, 1);
  return files;
}

function pathOf(place: Place, session: string, name: string): string | null {
  const project = projectDirectory(place);
  if (project === null || !isUuid(session)) return null;
  const isOwn = name === `${session}.jsonl` || (name.startsWith(`${session}/`) && BELOW_SESSION.test(name));
  return isOwn ? join(project, name) : null;
}

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  const project = projectDirectory(place);
  return project === null ? [] : sessionsInDirectory(place, project, sinceMs, reader, uuidOfTranscript);
}

/** No hooks for tools that change nothing: they would start a process before and after each call. */
const CHANGING_TOOLS = "^(?!(?:Read|Grep|Glob|LS|ToolSearch|TodoWrite|TaskList|TaskGet)$).*";
const DIALECT: HookDialect = {
  timeout: 10,
  events: {
    SessionStart: {},
    UserPromptSubmit: {},
    PreToolUse: { matcher: CHANGING_TOOLS },
    PostToolUse: { matcher: CHANGING_TOOLS },
    PostToolUseFailure: { matcher: CHANGING_TOOLS },
    Stop: {},
    StopFailure: {},
    PreCompact: {},
    SessionEnd: {},
  },
};

export const claude: Adapter = {
  name: "claude",
  testedVersion: "2.1.325",
  programs: ["claude"],
  packages: ["@anthropic-ai/claude-code"],
  parse,
  sessionIds: "chosen",
  isSessionId: isUuid,
  start: (args, session) => {
    const { isUtility, session: chosen } = parse(args);
    return isUtility || chosen !== null || session === null ? args : ["--session-id", session, ...args];
  },
  resume: (args, session, note) =>
    parse(args).isUtility || readsMessages(args) || !isUuid(session)
      ? null
      : withSession(args, ["--resume", session], asPrompt(note)),
  restart: (args, session, note) => {
    const { isUtility, prompt } = parse(args);
    if (isUtility || readsMessages(args)) return args;
    return withSession(args, session === null ? [] : ["--session-id", session], withNote(note, prompt));
  },
  sessionFiles,
  pathOf,
  findSessions,
  transcript: claudeTranscript,
  patterns: PATTERNS,
  unknownSession: {
    exitCodes: [1],
    patterns: ["^no conversation found\\b", "^error: --resume requires a valid session id\\b"],
  },
  exitZeroMeansFinished: true,
  placeholder: "Tool call interrupted: its outcome is unknown",
  hooks: {
    perRun: (command, directory) => {
      const calls = toolReports("claude", command, directory, {
        session: "session_id",
        ended: { lastId: "tool_use_id" },
      });
      const hooks = hooksOf(command, DIALECT, calls);
      return {
        args: ["--plugin-dir", join(directory, "claude")],
        env: {},
        files: [
          calls.file,
          {
            name: "claude/.claude-plugin/plugin.json",
            text: JSON.stringify({
              name: "lazarus-hooks",
              version: "1.0.0",
              description: "Reports to Lazarus",
            }),
          },
          { name: "claude/hooks/hooks.json", text: JSON.stringify({ hooks }) },
        ],
      };
    },
    parse: hookParser(CLAUDE_MEANINGS, PATTERNS),
    install: (place, command) => [
      hooksInSettings(join(configDirectory(place), "settings.json"), "claude", command, DIALECT),
    ],
  },
  // An option with any number of values: as a word of its own, the JSON would be followed by the prompt.
  mcp: (command) => ({ args: [`--mcp-config=${mcpServers(command)}`], env: {} }),
  credentials: [".claude/.credentials.json", ".claude.json"],
};
