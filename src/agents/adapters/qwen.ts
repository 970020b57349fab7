// Qwen Code, a fork of Gemini CLI with Claude's names for hooks. The id is chosen at the start; one JSONL per session, which
// may lag behind the tools. A call is in it before it runs. What the model is told about a cut-off call is wrong, so the
// resume note has to contradict it.
import { join } from "node:path";
import type { JsonObject } from "../../platform/json-file.ts";
import type { Adapter, FailurePatterns, Place, SessionFile, SessionReader } from "../adapter.ts";
import { isUuid } from "../arguments.ts";
import {
  CLAUDE_MEANINGS,
  type HookDialect,
  hookParser,
  hooksInSettings,
  hooksOf,
  NO_HOOKS,
  settingsFileSetup,
} from "../claude-style-hooks.ts";
import { sessionsInDirectory, uuidOfTranscript } from "../directory-sessions.ts";
import { NETWORK, NODE_NETWORK } from "../failure-patterns.ts";
import { mcpServers } from "../mcp-servers.ts";
import { toolReports } from "../tool-reports.ts";
import {
  asArray,
  asObject,
  asText,
  jsonLinesReader,
  type Step,
  textOf,
  timeMs,
  toolCall,
} from "../transcript.ts";
import { commandLines } from "./yargs-options.ts";

const COMMAND_LINES = commandLines({
  options: {
    one: [
      ...[
        "--telemetry-target",
        "--telemetry-otlp-endpoint",
        "--telemetry-otlp-protocol",
        "--telemetry-outfile",
      ],
      ...["--proxy", "-m", "--model", "--fallback-model", "-p", "--prompt", "-i", "--prompt-interactive"],
      ...[
        "--system-prompt",
        "--append-system-prompt",
        "--output-style",
        "--sandbox-image",
        "--approval-mode",
      ],
      ...["--channel", "--mcp-config", "--openai-logging-dir", "--openai-api-key", "--openai-base-url"],
      ...[
        "--input-format",
        "-o",
        "--output-format",
        "--json-fd",
        "--json-file",
        "--json-schema",
        "--input-file",
      ],
      ...[
        "--session-id",
        "--max-session-turns",
        "--max-wall-time",
        "--max-tool-calls",
        "--max-subagent-depth",
      ],
      ...["--auth-type"],
    ],
    many: [
      ...["--allowed-mcp-server-names", "--allowed-tools", "-e", "--extensions", "--include-directories"],
      ...["--add-dir", "--core-tools", "--exclude-tools", "--disabled-slash-commands"],
    ],
    maybe: ["-r", "--resume", "--worktree"],
  },
  commands: [
    ...[
      "auth",
      "board",
      "channel",
      "extensions",
      "hooks",
      "hook",
      "mcp",
      "review",
      "sandbox",
      "serve",
      "sessions",
    ],
    "update",
  ],
  elsewhere: ["--acp", "-l", "--list-extensions", "--worktree", "-v", "--version", "-h", "--help"],
  isPositionalHeadless: true,
});

const PATTERNS: FailurePatterns = {
  quota: ["^\\[api error: 429\\b"],
  overload: ["^\\[api error: 5\\d\\d\\b", `^\\[api error: .*${NETWORK}`, ...NODE_NETWORK],
  auth: ["^\\[api error: 40[13]\\b", "^no auth type is selected\\b", "^missing api key\\b"],
  permanent: ["^\\[api error: 400\\b.*(?:context|too long|maximum)"],
};

function configDirectory({ home }: Place): string {
  return join(home, ".qwen");
}

function chatsDirectory(place: Place): string {
  return join(configDirectory(place), "projects", place.cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), "chats");
}

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  const name = `${session}.jsonl`;
  const chats = chatsDirectory(place);
  const exists = isUuid(session) && reader.list(chats).some((entry) => entry.name === name);
  return exists ? [{ path: join(chats, name), name, kind: "lines" }] : [];
}

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  return sessionsInDirectory(place, chatsDirectory(place), sinceMs, reader, uuidOfTranscript);
}

function stepsOf(line: JsonObject): Step[] {
  const atMs = timeMs(line.timestamp);
  const parts = asArray(asObject(line.message).parts).map(asObject);
  if (line.type === "user") return [{ kind: "prompt", text: textOf(parts), atMs }];
  if (line.type === "tool_result")
    return parts
      .map(({ functionResponse }) => asObject(functionResponse))
      .map((result) => ({
        kind: "result",
        id: asText(result.id) || null,
        text: asText(asObject(result.response).output),
        atMs,
      }));
  if (line.type !== "assistant") return [];
  const calls = parts.filter(({ functionCall }) => functionCall !== undefined);
  return [
    { kind: "response", id: asText(line.uuid) || null, text: textOf(parts), ends: calls.length === 0, atMs },
    ...calls.map(({ functionCall }): Step => {
      const { id, name, args } = asObject(functionCall);
      return { kind: "call", call: toolCall(asText(id) || null, asText(name), args), atMs };
    }),
  ];
}

/** No hooks for tools that change nothing: they would start a process before and after each call. */
const CHANGING_TOOLS =
  "^(?!(?:read_file|read_many_files|list_directory|glob|grep_search|search_file_content|todo_write)$).*";
const SYSTEM_SETTINGS = "QWEN_CODE_SYSTEM_DEFAULTS_PATH";
const DIALECT: HookDialect = {
  timeout: 10_000,
  extra: { name: "lazarus" },
  events: {
    SessionStart: {},
    UserPromptSubmit: {},
    PreToolUse: { matcher: CHANGING_TOOLS },
    PostToolUse: { matcher: CHANGING_TOOLS },
    PostToolUseFailure: { matcher: CHANGING_TOOLS },
    Stop: {},
    PreCompact: {},
  },
};

export const qwen: Adapter = {
  name: "qwen",
  testedVersion: "0.24.4",
  programs: ["qwen"],
  packages: ["@qwen-code/qwen-code"],
  ...COMMAND_LINES,
  sessionIds: "chosen",
  isSessionId: isUuid,
  sessionFiles,
  pathOf: (place, session, name) =>
    isUuid(session) && name === `${session}.jsonl` ? join(chatsDirectory(place), name) : null,
  findSessions,
  transcript: jsonLinesReader(stepsOf),
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^no saved session found with id\\b"] },
  exitZeroMeansFinished: true,
  placeholder: "Tool execution result was not recorded: treat as failure and retry",
  hooks: {
    // System-wide settings, which the user's own override.
    perRun: (command, directory, env) => {
      if (env[SYSTEM_SETTINGS]) return NO_HOOKS;
      const calls = toolReports("qwen", command, directory, {
        session: "session_id",
        ended: { lastId: "tool_call_id" },
      });
      const hooks = hooksOf(command, DIALECT, calls);
      const setup = settingsFileSetup("qwen", SYSTEM_SETTINGS, directory, hooks);
      return { ...setup, files: [calls.file, ...setup.files] };
    },
    parse: hookParser(CLAUDE_MEANINGS, PATTERNS),
    install: (place, command) => [
      hooksInSettings(join(configDirectory(place), "settings.json"), "qwen", command, DIALECT),
    ],
  },
  mcp: (command) => ({ args: [`--mcp-config=${mcpServers(command)}`], env: {} }),
  credentials: [".qwen/oauth_creds.json", ".qwen/.env"],
};
