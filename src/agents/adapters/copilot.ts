// GitHub Copilot CLI. The id is chosen at the start; a session is a directory, whose events.jsonl is the conversation. Hooks of
// a run are passed as a plugin directory. They contain no call ids.
import { join } from "node:path";
import type { JsonObject } from "../../platform/json-file.ts";
import { shellWord } from "../../platform/shell-word.ts";
import type {
  Adapter,
  FailurePatterns,
  HookEvent,
  Invocation,
  Place,
  SessionFile,
  SessionReader,
} from "../adapter.ts";
import {
  asPrompt,
  type Grammar,
  hasOption,
  isUuid,
  optionsOnly,
  optionValue,
  positionals,
  readWords,
  type Word,
  withNote,
} from "../arguments.ts";
import { NETWORK } from "../failure-patterns.ts";
import { mcpServers } from "../mcp-servers.ts";
import { ownFile } from "../own-file.ts";
import { type CallCommands, installedCalls, silentInRun, toolReports } from "../tool-reports.ts";
import { asArray, asObject, asText, jsonLinesReader, type Step, timeMs, toolCall } from "../transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...["-i", "--interactive", "-p", "--prompt", "--model", "--reasoning-effort", "--context", "--auto-tier"],
    ...["--agent", "-n", "--name", "--session-id", "-C", "--log-dir", "--extension-sdk-path", "--log-level"],
    ...["--stream", "--output-format", "--add-dir", "--attachment", "--disable-mcp-server"],
    ...["--add-github-mcp-toolset", "--add-github-mcp-tool", "--plugin-dir", "--additional-mcp-config"],
    ...["--mcp-github-auth", "--max-autopilot-continues", "--mode", "--environment-host"],
    ...["--environment-compute-id", "--dynamic-retrieval", "--enable-mcp-server", "--max-ai-credits"],
    "--usage-output-file",
  ],
  many: [
    ...["--allow-tool", "--deny-tool", "--available-tools", "--excluded-tools", "--secret-env-vars"],
    ...["--allow-url", "--deny-url"],
  ],
  maybe: ["-r", "--resume", "--connect", "--share", "--bash-env", "--mouse"],
};
const COMMANDS = [
  ...["app", "login", "help", "init", "config", "update", "version", "workflow", "sessions", "memories"],
  ...["plugin", "mcp", "skill", "instruction", "lsp", "sandbox", "completion"],
];
/** With these, the conversation is elsewhere or belongs to another process. */
const ELSEWHERE = ["-v", "--version", "-h", "--help", "--connect", "--acp", "--remote"];
const SESSION_OPTIONS = ["--session-id", "-r", "--resume", "--continue", "-n", "--name"];
const PROMPT_OPTIONS = ["-p", "--prompt", "-i", "--interactive"];

function parse(args: readonly string[]): Invocation {
  const words = readWords(args, OPTIONS);
  const [first] = positionals(words);
  return {
    isHeadless: hasOption(words, "-p", "--prompt"),
    prompt: optionValue(words, ...PROMPT_OPTIONS) ?? null,
    session: chosenSession(words),
    isUtility: hasOption(words, ...ELSEWHERE) || (first !== undefined && COMMANDS.includes(first)),
  };
}

/** A name or a prefix of an id: the session is unknown until the agent reports it. */
function chosenSession(words: readonly Word[]): Invocation["session"] {
  const id = optionValue(words, "--session-id") ?? optionValue(words, "-r", "--resume");
  if (id !== undefined && isUuid(id)) return { id };
  return hasOption(words, "--session-id", "-r", "--resume", "--continue") ? "newest" : null;
}

function withPrompt(args: readonly string[], session: readonly string[], prompt: string): readonly string[] {
  const words = readWords(args, OPTIONS);
  const option = hasOption(words, "-p", "--prompt") ? "-p" : "-i";
  return [...optionsOnly(words, ...SESSION_OPTIONS, ...PROMPT_OPTIONS), ...session, option, prompt];
}

function sessionDirectory({ env, home }: Place, session: string): string {
  return join(env.COPILOT_HOME || join(home, ".copilot"), "session-state", session);
}

/** Without the files that mark a running process. */
const NAME = /^(?!inuse\.)(?:[\w-][\w.-]*\/){0,2}[\w-][\w.-]*$/;

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  if (!isUuid(session)) return [];
  const root = sessionDirectory(place, session);
  const files: SessionFile[] = [];
  const visit = (below: string, depth: number) => {
    for (const { name, isDirectory } of reader.list(join(root, below))) {
      const path = below === "" ? name : `${below}/${name}`;
      if (isDirectory && depth > 0) visit(path, depth - 1);
      else if (!isDirectory && NAME.test(path))
        files.push({ path: join(root, path), name: path, kind: name.endsWith(".jsonl") ? "lines" : "whole" });
    }
  };
  visit("", 2);
  return files.some(({ name }) => name === "events.jsonl") ? files : [];
}

const HEAD_BYTES = 16 * 1024;

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  const root = sessionDirectory(place, "");
  return reader
    .list(root)
    .flatMap(({ name }) => {
      const atMs = isUuid(name) ? reader.createdMs(join(root, name)) : undefined;
      return atMs === undefined || atMs < sinceMs ? [] : [{ id: name, atMs }];
    })
    .filter(({ id }) => {
      const head = reader.head(join(root, id, "workspace.yaml"), HEAD_BYTES) ?? "";
      return /^cwd: (.*)$/m.exec(head)?.[1] === place.cwd;
    })
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ id }) => id);
}

function steps({ type, data: fields, timestamp }: JsonObject): readonly Step[] {
  const data = asObject(fields);
  const atMs = timeMs(timestamp);
  const id = asText(data.toolCallId) || null;
  switch (type) {
    case "user.message":
      return [{ kind: "prompt", text: asText(data.content), atMs }];
    case "assistant.message": {
      const ends = asArray(data.toolRequests).length === 0;
      return [
        { kind: "response", id: asText(data.messageId) || null, text: asText(data.content), ends, atMs },
      ];
    }
    case "tool.execution_start":
      return [{ kind: "call", call: toolCall(id, asText(data.toolName), data.arguments), atMs }];
    case "tool.execution_complete":
      return [{ kind: "result", id, text: asText(asObject(data.result).content), atMs }];
    case "session.error":
      return [{ kind: "system", text: asText(data.message), atMs }];
    default:
      return [];
  }
}

const LAST_ERROR = "^failed to get response from the ai model;.* last error: ";
const PATTERNS: FailurePatterns = {
  quota: [`${LAST_ERROR}429\\b`, "^429 .*rate limit"],
  overload: [`${LAST_ERROR}5\\d\\d\\b`, `${LAST_ERROR}.*${NETWORK}`],
  auth: [
    `${LAST_ERROR}40[13]\\b`,
    "^authentication failed\\b",
    "^error: no authentication information found",
  ],
  permanent: ["^400 .*(?:context|too long|maximum)"],
};

const EVENTS = [
  ...["sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "postToolUseFailure", "agentStop"],
  ...["preCompact", "sessionEnd"],
];

function hooksJson(command: readonly string[], { started, ended, prompted }: CallCommands): string {
  const commands: Readonly<Record<string, readonly string[]>> = {
    userPromptSubmitted: prompted,
    preToolUse: started,
    postToolUse: ended,
    postToolUseFailure: ended,
  };
  const hook = (event: string) => ({
    type: "command",
    bash: [...(commands[event] ?? command), event].map(shellWord).join(" "),
    timeoutSec: 10,
  });
  const hooks = Object.fromEntries(EVENTS.map((event) => [event, [hook(event)]]));
  return `${JSON.stringify({ version: 1, description: "Written by Lazarus", hooks }, null, 2)}\n`;
}

function parseHook(event: string, input: JsonObject): readonly HookEvent[] {
  const call = () => toolCall(null, asText(input.toolName), input.toolArgs);
  switch (event) {
    case "sessionStart": {
      const session = asText(input.sessionId);
      return session === "" ? [] : [{ kind: "session", session, transcript: null }];
    }
    case "userPromptSubmitted":
      return [{ kind: "prompt" }];
    case "preToolUse":
      return [{ kind: "tool-start", call: call() }];
    case "postToolUse":
    case "postToolUseFailure":
      return [{ kind: "tool-end", call: call() }];
    case "agentStop":
      return [{ kind: "turn-end" }];
    case "preCompact":
      return [{ kind: "compaction" }];
    case "sessionEnd":
      return [{ kind: "session-end", reason: asText(input.reason) }];
    default:
      return [];
  }
}

export const copilot: Adapter = {
  name: "copilot",
  testedVersion: "1.0.102",
  programs: ["copilot"],
  packages: ["@github/copilot"],
  parse,
  sessionIds: "chosen",
  isSessionId: isUuid,
  start: (args, session) => {
    const { isUtility, session: chosen } = parse(args);
    return isUtility || chosen !== null || session === null ? args : [`--session-id=${session}`, ...args];
  },
  resume: (args, session, note) =>
    parse(args).isUtility || !isUuid(session)
      ? null
      : withPrompt(args, [`--resume=${session}`], asPrompt(note)),
  restart: (args, session, note) => {
    const { isUtility, prompt } = parse(args);
    if (isUtility) return args;
    return withPrompt(args, session === null ? [] : [`--session-id=${session}`], withNote(note, prompt));
  },
  sessionFiles,
  pathOf: (place, session, name) =>
    isUuid(session) && NAME.test(name) ? join(sessionDirectory(place, session), name) : null,
  findSessions,
  sessionInOutput: (line) => /^Resume +copilot --resume=([0-9a-f-]{36})/.exec(line)?.[1] ?? null,
  transcript: jsonLinesReader(steps, { isTranscript: (name) => name === "events.jsonl" }),
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^error: no session, task, or name matched\\b"] },
  exitZeroMeansFinished: true,
  placeholder: null,
  hooks: {
    perRun: (command, directory) => {
      const calls = toolReports("copilot", command, directory, {
        session: "sessionId",
        ended: { output: "toolResult" },
      });
      return {
        args: ["--plugin-dir", join(directory, "copilot")],
        env: {},
        files: [
          calls.file,
          {
            name: "copilot/plugin.json",
            text: JSON.stringify({ name: "lazarus-hooks", version: "1.0.0", hooks: "hooks.json" }),
          },
          { name: "copilot/hooks.json", text: hooksJson(command, calls) },
        ],
      };
    },
    parse: parseHook,
    install: (place, command) => [
      ownFile(
        join(place.env.COPILOT_HOME || join(place.home, ".copilot"), "hooks", "lazarus.json"),
        hooksJson(silentInRun(command), installedCalls(command)),
      ),
    ],
  },
  mcp: (command) => ({
    args: [`--additional-mcp-config=${mcpServers(command, { type: "local", tools: ["*"] })}`],
    env: {},
  }),
  credentials: [".copilot/config.json"],
};
