import { qwen } from "../../../src/agents/adapters/qwen.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const CHATS = "/home/Ann/.qwen/projects/-home-Ann-my-app-v2/chats";
const common = {
  session_id: SESSION,
  transcript_path: `${CHATS}/${SESSION}.jsonl`,
  cwd: "/home/Ann/my app.v2",
};
const shell = {
  tool_name: "run_shell_command",
  tool_input: { command: "git push" },
  tool_use_id: "toolu_1",
  tool_call_id: "call_1",
};
const call = { id: "call_1", tool: "run_shell_command", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: qwen,
  session: SESSION,
  commands: [["bunx", "@qwen-code/qwen-code", "-p", "x"]],
  parse: [
    [["-p", "Write", "--yolo"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["Write", "it"], { isHeadless: true, prompt: "Write it" }],
    [["-i", "Write"], { isHeadless: false, prompt: "Write" }],
    [["-c", "-p", "more"], { session: "newest", prompt: "more" }],
    [["--resume", SESSION, "more"], { session: { id: SESSION }, prompt: "more" }],
    [["--resume", SESSION, "--fork-session", "more"], { session: null }],
    [["sessions", "list"], { isUtility: true }],
    [["--version"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["-p", "Write", "--yolo", "--auth-type", "openai"],
      start: ["--session-id", SESSION, "-p", "Write", "--yolo", "--auth-type", "openai"],
      resume: ["--yolo", "--auth-type", "openai", "--resume", SESSION, "-p", "NOTE"],
      restart: ["--yolo", "--auth-type", "openai", "--session-id", SESSION, "-p", "NOTE\n\nWrite"],
    },
    {
      args: ["--allowed-tools", "a", "b", "--", "Write"],
      start: ["--session-id", SESSION, "--allowed-tools", "a", "b", "--", "Write"],
      resume: ["--allowed-tools", "a", "b", "--resume", SESSION, "NOTE"],
      restart: ["--allowed-tools", "a", "b", "--session-id", SESSION, "NOTE\n\nWrite"],
    },
    { args: ["mcp", "list"], start: ["mcp", "list"], resume: null, restart: ["mcp", "list"] },
  ],
  disk: {
    [`${CHATS}/${SESSION}.jsonl`]: { text: '{"cwd":"/home/Ann/my app.v2"}\n', createdMs: 2000 },
    [`${CHATS}/${OTHER_SESSION}.jsonl`]: { text: '{"cwd":"/home/Ann/my-app.v2"}\n', createdMs: 3000 },
    [`${CHATS}/11111111-1111-4222-8333-444455556666.jsonl`]: { text: "{}\n", createdMs: 999 },
    "/home/Ann/.qwen/oauth_creds.json": {},
  },
  names: [`${SESSION}.jsonl`],
  found: [SESSION],
  hostileNames: [`${OTHER_SESSION}.jsonl`, `x/${SESSION}.jsonl`],
  golden: {
    finished: { turn: 4, open: [], isFinished: true, damagedLines: 0 },
    killed: { turn: 2, isFinished: false, openCommands: ["echo 2"], damagedLines: 0 },
    resumed: { turn: 5, open: [], isFinished: true, damagedLines: 0 },
  },
  hooks: [
    [
      "SessionStart",
      { ...common, source: "startup", model: "m" },
      [{ kind: "session", session: SESSION, transcript: common.transcript_path }],
    ],
    ["UserPromptSubmit", { ...common, prompt: "" }, [{ kind: "prompt" }]],
    ["PreToolUse", { ...common, ...shell }, [{ kind: "tool-start", call }]],
    ["PostToolUse", { ...common, ...shell, tool_response: {} }, [{ kind: "tool-end", call }]],
    ["Stop", { ...common, stop_hook_active: false, context_usage: 0.1 }, [{ kind: "turn-end" }]],
    ["Notification", { ...common, notification_type: "auth_success" }, []],
  ],
  prints: [
    ["permanent", "[API Error: 400 This model's maximum context length is 128000 tokens.]"],
    ["quota", "[API Error: 429 Rate limit reached]"],
    ["overload", "[API Error: 529 Overloaded]"],
    ["auth", "[API Error: 401 Incorrect API key]"],
    [
      "unknown-session",
      `No saved session found with ID ${SESSION}. Run \`qwen --resume\` without an ID to choose from existing sessions.`,
    ],
    [null, "It said [API Error: 529 Overloaded]."],
  ],
  settings: '{\n\t"model": {\n\t\t"name": "m"\n\t}\n}',
};
