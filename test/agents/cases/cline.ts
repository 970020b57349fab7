import { cline } from "../../../src/agents/adapters/cline.ts";
import type { AdapterCases } from "./case.ts";

const SESSION = "1794984905334_rdo5i";
const OTHER = "1794984905335_abcde";
const SESSIONS = "/home/Ann/.cline/data/sessions";
const run = { id: "call_1", name: "run_commands", input: { commands: ["git push"] } };
const call = { id: "call_1", tool: "run_commands", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: cline,
  session: SESSION,
  commands: [["npx", "cline", "x"]],
  parse: [
    [["-m", "m", "Write"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["-i"], { isHeadless: false, prompt: null }],
    [["--id", SESSION, "more"], { session: { id: SESSION }, prompt: "more" }],
    [["history"], { isUtility: true }],
    [["-z", "Write"], { isUtility: true }],
  ],
  lives: [
    // Resuming needs a terminal.
    {
      args: ["-m", "m", "Write"],
      start: ["-m", "m", "Write"],
      resume: null,
      restart: ["-m", "m", "NOTE\n\nWrite"],
    },
    {
      args: ["-i", "-m", "m"],
      start: ["-i", "-m", "m"],
      resume: ["-i", "-m", "m", "--id", SESSION],
      restart: ["-i", "-m", "m", "NOTE"],
    },
    { args: ["auth"], start: ["auth"], resume: null, restart: ["auth"] },
  ],
  disk: {
    [`${SESSIONS}/${SESSION}/${SESSION}.messages.json`]: { text: "{}" },
    [`${SESSIONS}/${SESSION}/${SESSION}.json`]: { text: '{\n  "cwd": "/home/Ann/my app.v2"\n}' },
    [`${SESSIONS}/${OTHER}/${OTHER}.json`]: { text: '{"cwd": "/home/Ann"}' },
  },
  names: [`${SESSION}.messages.json`, `${SESSION}.json`],
  found: [SESSION],
  hostileNames: [`${OTHER}.json`, `x/${SESSION}.json`],
  // A session is one document, not lines: see cline.test.ts.
  golden: {},
  hooks: [
    [
      "TaskStart",
      { taskId: SESSION, sessionContext: { rootSessionId: SESSION } },
      [{ kind: "session", session: SESSION, transcript: null }],
    ],
    [
      "PreToolUse",
      { taskId: SESSION, hookName: "tool_call", tool_call: run },
      [{ kind: "tool-start", call }],
    ],
    [
      "PostToolUse",
      { taskId: SESSION, hookName: "tool_result", tool_result: { ...run, output: [], durationMs: 538 } },
      [{ kind: "tool-end", call }],
    ],
    ["TaskComplete", { taskId: SESSION }, [{ kind: "turn-end" }]],
  ],
  prints: [
    ["quota", "error: Rate limit reached. Please try again later."],
    ["overload", "error: Overloaded"],
    ["auth", "error: Unauthorized"],
    ["permanent", "error: This model's maximum context length is 128000 tokens."],
    [null, "I fixed the handling of error: 429."],
  ],
  settings: null,
};
