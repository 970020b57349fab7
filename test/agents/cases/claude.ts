import { claude } from "../../../src/agents/adapters/claude.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const PROJECT = "/home/Ann/.claude/projects/-home-Ann-my-app-v2";
const common = {
  session_id: SESSION,
  transcript_path: `${PROJECT}/${SESSION}.jsonl`,
  cwd: "/home/Ann/my app.v2",
};
const bash = {
  tool_name: "Bash",
  tool_input: { command: "git push", description: "Push" },
  tool_use_id: "toolu_1",
};
const call = { id: "toolu_1", tool: "Bash", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: claude,
  session: SESSION,
  commands: [
    ["npx", "-y", "@anthropic-ai/claude-code", "-p", "x"],
    ["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "-p", "x"],
  ],
  parse: [
    [["-p", "Write"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["--allowedTools", "Bash", "Write", "-p", "Go"], { isHeadless: true, prompt: "Go" }],
    [[], { isHeadless: false, prompt: null, session: null }],
    [["-c"], { session: "newest" }],
    [["-pc", "more"], { isHeadless: true, session: "newest", prompt: "more" }],
    [["--resume", SESSION, "more"], { session: { id: SESSION }, prompt: "more" }],
    [["--resume"], { session: "newest", prompt: null }],
    [["-r", "my-session-name"], { session: "newest", prompt: null }],
    [["--resume", SESSION, "--fork-session"], { session: null }],
    [[`--session-id=${SESSION}`], { session: { id: SESSION } }],
    [["mcp", "list"], { isUtility: true }],
    [["--version"], { isUtility: true }],
    [["-p", "x", "--no-session-persistence"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["-p", "Write", "--model", "opus", "--allowedTools", "Bash", "Write"],
      start: ["--session-id", SESSION, "-p", "Write", "--model", "opus", "--allowedTools", "Bash", "Write"],
      resume: ["-p", "--model", "opus", "--allowedTools", "Bash", "Write", "--resume", SESSION, "NOTE"],
      restart: [
        "-p",
        "--model",
        "opus",
        "--allowedTools",
        "Bash",
        "Write",
        "--session-id",
        SESSION,
        "NOTE\n\nWrite",
      ],
    },
    {
      args: ["--resume", SESSION, "--", "-p is a flag"],
      start: ["--resume", SESSION, "--", "-p is a flag"],
      resume: ["--resume", SESSION, "NOTE"],
      restart: ["--session-id", SESSION, "NOTE\n\n-p is a flag"],
    },
    { args: ["mcp", "list"], start: ["mcp", "list"], resume: null, restart: ["mcp", "list"] },
    {
      args: ["-p", "--input-format", "stream-json"],
      start: ["--session-id", SESSION, "-p", "--input-format", "stream-json"],
      resume: null,
      restart: ["-p", "--input-format", "stream-json"],
    },
  ],
  disk: {
    [`${PROJECT}/${SESSION}.jsonl`]: { text: '{"cwd":"/home/Ann/my app.v2"}\n', createdMs: 2000 },
    [`${PROJECT}/${SESSION}/subagents/agent-a1.jsonl`]: {},
    [`${PROJECT}/${SESSION}/tool-results/b2.txt`]: {},
    [`${PROJECT}/${OTHER_SESSION}.jsonl`]: { text: '{"cwd":"/home/Ann/my-app/v2"}\n', createdMs: 3000 },
    [`${PROJECT}/11111111-1111-4222-8333-444455556666.jsonl`]: { text: '{"type":"x"}\n', createdMs: 999 },
    "/home/Ann/.claude/.credentials.json": {},
  },
  names: [`${SESSION}.jsonl`, `${SESSION}/subagents/agent-a1.jsonl`, `${SESSION}/tool-results/b2.txt`],
  found: [SESSION],
  hostileNames: [
    `${SESSION}/subagents/../../../../.credentials.json`,
    `${SESSION}/.x/y`,
    `${SESSION}/a/b/c/d`,
  ],
  golden: {
    finished: { turn: 3, open: [], isFinished: true, damagedLines: 0 },
    killed: { turn: 2, isFinished: false, openCommands: ["echo 2"], damagedLines: 0 },
    resumed: { turn: 5, open: [], isFinished: true, damagedLines: 0 },
  },
  hooks: [
    [
      "SessionStart",
      { ...common, source: "startup" },
      [{ kind: "session", session: SESSION, transcript: common.transcript_path }],
    ],
    ["UserPromptSubmit", { ...common, prompt: "Write" }, [{ kind: "prompt" }]],
    ["PreToolUse", { ...common, ...bash }, [{ kind: "tool-start", call }]],
    ["PostToolUse", { ...common, ...bash, tool_response: { stdout: "" } }, [{ kind: "tool-end", call }]],
    ["Stop", { ...common, stop_hook_active: false, background_tasks: [] }, [{ kind: "turn-end" }]],
    [
      "StopFailure",
      { ...common, error: "server_error", last_assistant_message: "API Error: 529 Overloaded." },
      [{ kind: "failure", class: "overload", message: "API Error: 529 Overloaded." }],
    ],
    [
      "StopFailure",
      {
        ...common,
        error: "unknown",
        last_assistant_message: "API Error: Unable to connect to API (ECONNREFUSED)",
      },
      [{ kind: "failure", class: "overload", message: "API Error: Unable to connect to API (ECONNREFUSED)" }],
    ],
    ["PreCompact", { ...common, trigger: "manual" }, [{ kind: "compaction" }]],
    ["SessionEnd", { ...common, reason: "other" }, [{ kind: "session-end", reason: "other" }]],
    ["MessageDisplay", { ...common, delta: "x" }, []],
  ],
  prints: [
    ["quota", "API Error: Request rejected (429) · This may be a temporary capacity issue"],
    ["overload", "API Error: 529 Overloaded. This is a server-side issue, usually temporary"],
    ["auth", "Failed to authenticate. API Error: 401 Invalid bearer token"],
    ["auth", "Not logged in · Please run /login"],
    ["permanent", "Prompt is too long"],
    ["unknown-session", `No conversation found with session ID: ${SESSION}`],
    [null, "I fixed the handling of API Error: 529."],
  ],
  settings:
    '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": [\n          {\n            "type": "command",\n            "command": "say done"\n          }\n        ]\n      }\n    ]\n  }\n}\n',
};
