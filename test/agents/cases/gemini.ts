import { gemini } from "../../../src/agents/adapters/gemini.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const CHATS = "/home/Ann/.gemini/tmp/my-app-v2-1/chats";
const FIRST = "session-2026-11-18T06-56-0b0c1d2e.jsonl";
const SECOND = "session-2026-11-18T06-58-0b0c1d2e.jsonl";
const common = { session_id: SESSION, transcript_path: `${CHATS}/${FIRST}`, cwd: "/home/Ann/my app.v2" };
const shell = { tool_name: "run_shell_command", tool_input: { command: "git push", is_background: false } };
const call = { id: null, tool: "run_shell_command", summary: "git push", command: "git push" };
const head = (id: string) => `{"sessionId":"${id}","kind":"main"}\n`;

export const cases: AdapterCases = {
  adapter: gemini,
  session: SESSION,
  commands: [["npx", "-y", "@google/gemini-cli@0.61.0", "-p", "x"]],
  parse: [
    [["-p", "Write", "--yolo"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["-i", "Write"], { isHeadless: false, prompt: "Write" }],
    [["Write", "it"], { isHeadless: false, prompt: "Write it" }],
    [[], { isHeadless: false, prompt: null, session: null }],
    [["--resume", SESSION, "-p", "more"], { session: { id: SESSION }, prompt: "more" }],
    [["--resume", "latest"], { session: "newest" }],
    [["-r", "5"], { session: "newest" }],
    [["--resume"], { session: "newest" }],
    [["mcp", "list"], { isUtility: true }],
    [["--list-sessions"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["-p", "Write", "--yolo", "-m", "flash", "-e", "a", "b"],
      start: ["--session-id", SESSION, "-p", "Write", "--yolo", "-m", "flash", "-e", "a", "b"],
      resume: ["--yolo", "-m", "flash", "-e", "a", "b", "--resume", SESSION, "-p", "NOTE"],
      restart: ["--yolo", "-m", "flash", "-e", "a", "b", "--session-id", SESSION, "-p", "NOTE\n\nWrite"],
    },
    {
      args: ["--yolo", "Write it"],
      start: ["--session-id", SESSION, "--yolo", "Write it"],
      resume: ["--yolo", "--resume", SESSION, "NOTE"],
      restart: ["--yolo", "--session-id", SESSION, "NOTE\n\nWrite it"],
    },
    {
      args: ["--resume", "latest"],
      start: ["--resume", "latest"],
      resume: ["--resume", SESSION, "-i", "NOTE"],
      restart: ["--session-id", SESSION, "-i", "NOTE"],
    },
    { args: ["mcp", "list"], start: ["mcp", "list"], resume: null, restart: ["mcp", "list"] },
  ],
  disk: {
    "/home/Ann/.gemini/projects.json": {
      text: '{"projects":{"/home/Ann/my app.v2":"my-app-v2-1","/x":"../../x"}}',
    },
    [`${CHATS}/${FIRST}`]: { text: head(SESSION), createdMs: 2000 },
    [`${CHATS}/${SECOND}`]: { text: head(SESSION), createdMs: 3000 },
    [`${CHATS}/session-2026-11-18T06-57-0b0c1d2e.jsonl`]: {
      text: head("0b0c1d2e-9999-4222-8333-444455556666"),
      createdMs: 2500,
    },
    [`${CHATS}/session-2026-11-18T06-40-99999999.jsonl`]: { text: head(OTHER_SESSION), createdMs: 999 },
    "/home/Ann/.gemini/tmp/my-app-v2/chats/session-2026-11-18T06-56-0b0c1d2e.jsonl": { text: head(SESSION) },
    "/home/Ann/.gemini/oauth_creds.json": {},
  },
  names: [FIRST, SECOND],
  found: [SESSION, "0b0c1d2e-9999-4222-8333-444455556666"],
  hostileNames: ["session-2026-11-18T06-56-99999999.jsonl", "session-../x-0b0c1d2e.jsonl", `${FIRST}/x`],
  golden: {
    finished: { turn: 4, open: [], isFinished: true, damagedLines: 0 },
    // The call that was cut off is not in it, and the text before the call could be the last one.
    killed: { turn: 2, open: [], isFinished: true, damagedLines: 0 },
    resumed: { turn: 5, open: [], isFinished: true, damagedLines: 0 },
  },
  hooks: [
    [
      "SessionStart",
      { ...common, source: "startup" },
      [{ kind: "session", session: SESSION, transcript: common.transcript_path }],
    ],
    ["BeforeAgent", { ...common, prompt: "Write" }, [{ kind: "prompt" }]],
    ["BeforeTool", { ...common, ...shell }, [{ kind: "tool-start", call }]],
    ["AfterTool", { ...common, ...shell, tool_response: { llmContent: "" } }, [{ kind: "tool-end", call }]],
    ["AfterAgent", { ...common, prompt: "Write", prompt_response: "Done." }, [{ kind: "turn-end" }]],
    ["SessionEnd", { ...common, reason: "exit" }, [{ kind: "session-end", reason: "exit" }]],
    ["PreCompress", { ...common, trigger: "auto" }, []],
    ["BeforeModel", { ...common, llm_request: {} }, []],
  ],
  prints: [
    ["quota", "  status: 429"],
    ["permanent", "  status: 400"],
    ["overload", "  status: 503,"],
    ["auth", "  status: 401"],
    ["unknown-session", `Error resuming session: Invalid session identifier "${SESSION}".`],
    [null, "The status: 429 is handled."],
  ],
  settings:
    '{\n  "security": {\n    "auth": {\n      "selectedType": "gemini-api-key"\n    }\n  },\n  "hooks": {\n    "AfterAgent": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}\n',
};
