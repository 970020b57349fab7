import { codex } from "../../../src/agents/adapters/codex.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const SESSIONS = "/home/Ann/.codex/sessions";
const NAME = `2026/11/18/rollout-2026-11-18T06-55-35-${SESSION}.jsonl`;
const common = {
  session_id: SESSION,
  transcript_path: `${SESSIONS}/${NAME}`,
  cwd: "/home/Ann/my app.v2",
  model: "m",
};
const bash = { tool_name: "Bash", tool_input: { command: "git push" }, tool_use_id: "call_1" };
const call = { id: "call_1", tool: "Bash", summary: "git push", command: "git push" };
const meta = (cwd: string) => `{"type":"session_meta","payload":{"cwd":"${cwd}"}}\n`;

export const cases: AdapterCases = {
  adapter: codex,
  session: SESSION,
  commands: [
    ["npx", "@openai/codex", "exec", "x"],
    ["node", "/usr/lib/node_modules/@openai/codex/bin/codex.js", "exec", "x"],
  ],
  parse: [
    [["exec", "Write"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["-c", "model=x", "e", "--json", "-"], { isHeadless: true, prompt: null }],
    [["Write"], { isHeadless: false, prompt: "Write", session: null }],
    [[], { isHeadless: false, prompt: null, session: null }],
    [["exec", "resume", SESSION, "more"], { isHeadless: true, session: { id: SESSION }, prompt: "more" }],
    [["exec", "resume", "--last", "more"], { session: "newest", prompt: "more" }],
    [["resume"], { isHeadless: false, session: "newest", prompt: null }],
    [["resume", SESSION], { session: { id: SESSION }, prompt: null }],
    [["fork", SESSION], { session: null }],
    [["mcp", "list"], { isUtility: true }],
    [["login"], { isUtility: true }],
    [["exec", "--ephemeral", "x"], { isUtility: true }],
    [["exec", "review"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["-m", "gpt", "exec", "-s", "workspace-write", "--json", "Write"],
      start: ["-m", "gpt", "exec", "-s", "workspace-write", "--json", "Write"],
      resume: ["exec", "-m", "gpt", "-s", "workspace-write", "--json", "resume", SESSION, "NOTE"],
      restart: ["exec", "NOTE\n\nWrite", "-m", "gpt", "-s", "workspace-write", "--json"],
    },
    {
      args: ["exec", "Write", "-i", "a.png", "b.png"],
      start: ["exec", "Write", "-i", "a.png", "b.png"],
      resume: ["exec", "resume", SESSION, "NOTE"],
      restart: ["exec", "NOTE\n\nWrite", "-i", "a.png", "b.png"],
    },
    {
      args: ["resume", "--last", "--search"],
      start: ["resume", "--last", "--search"],
      resume: ["--search", "resume", SESSION, "NOTE"],
      restart: ["NOTE", "--search"],
    },
    { args: ["login"], start: ["login"], resume: null, restart: ["login"] },
  ],
  disk: {
    [`${SESSIONS}/${NAME}`]: { text: meta("/home/Ann/my app.v2"), createdMs: 2000 },
    [`${SESSIONS}/2026/11/18/rollout-2026-11-18T07-00-00-${OTHER_SESSION}.jsonl`]: {
      text: meta("/else"),
      createdMs: 3000,
    },
    [`${SESSIONS}/2026/11/17/rollout-2026-11-17T07-00-00-11111111-1111-4222-8333-444455556666.jsonl`]: {
      text: meta("/home/Ann/my app.v2"),
      createdMs: 999,
    },
    "/home/Ann/.codex/auth.json": {},
  },
  names: [NAME],
  found: [SESSION],
  hostileNames: [
    `2026/11/18/rollout-2026-11-18T06-55-35-${OTHER_SESSION}.jsonl`,
    `2026/11/../../rollout-2026-11-18T06-55-35-${SESSION}.jsonl`,
    `2026/11/18/rollout-2026-11-18T06-55-35/-${SESSION}.jsonl`,
  ],
  golden: {
    finished: { turn: 4, open: [], isFinished: true, damagedLines: 0 },
    killed: { turn: 2, isFinished: false, openCommands: ["echo 2"], damagedLines: 0 },
    resumed: { turn: 5, open: [], isFinished: true, damagedLines: 0 },
    // The turn is complete, with an error of the API.
    failed: { turn: 2, open: [], isFinished: false, damagedLines: 0 },
  },
  hooks: [
    [
      "SessionStart",
      { ...common, source: "startup" },
      [{ kind: "session", session: SESSION, transcript: common.transcript_path }],
    ],
    ["UserPromptSubmit", { ...common, prompt: "Write" }, [{ kind: "prompt" }]],
    ["PreToolUse", { ...common, ...bash }, [{ kind: "tool-start", call }]],
    ["PostToolUse", { ...common, ...bash, tool_response: "" }, [{ kind: "tool-end", call }]],
    ["Stop", { ...common, stop_hook_active: false }, [{ kind: "turn-end" }]],
    ["SessionEnd", { ...common, reason: "other" }, [{ kind: "session-end", reason: "other" }]],
    ["agent-turn-complete", { type: "agent-turn-complete", "thread-id": SESSION }, [{ kind: "turn-end" }]],
    ["PreModelRequest", common, []],
  ],
  prints: [
    ["auth", "ERROR: Missing environment variable: `OPENAI_API_KEY`."],
    ["permanent", "ERROR: Codex ran out of room in the model's context window. Start a new thread."],
    ["quota", "ERROR: exceeded retry limit, last status: 429 Too Many Requests"],
    ["overload", "ERROR: unexpected status 529 <unknown status code>: Overloaded"],
    ["auth", "ERROR: unexpected status 401 Unauthorized: "],
    [
      "unknown-session",
      `Error: thread/resume: thread/resume failed: no rollout found for thread id ${SESSION} (code -32600)`,
    ],
    [null, "user asked about ERROR: unexpected status 401"],
  ],
  settings: null,
};
