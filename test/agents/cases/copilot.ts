import { copilot } from "../../../src/agents/adapters/copilot.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const STATE = "/home/Ann/.copilot/session-state";
const common = { sessionId: SESSION, timestamp: 1, cwd: "/home/Ann/my app.v2" };
const tool = { toolName: "bash", toolArgs: { command: "git push", description: "Push" } };
const call = { id: null, tool: "bash", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: copilot,
  session: SESSION,
  commands: [["npx", "@github/copilot", "-p", "x"]],
  parse: [
    [["-p", "Write", "--allow-all-tools"], { isHeadless: true, prompt: "Write", session: null }],
    [["-i", "Write"], { isHeadless: false, prompt: "Write" }],
    [["--resume"], { session: "newest", prompt: null }],
    [[`--resume=${SESSION}`, "-p", "more"], { session: { id: SESSION }, prompt: "more" }],
    [["--session-id", SESSION], { session: { id: SESSION } }],
    [["--continue"], { session: "newest" }],
    [["mcp", "list"], { isUtility: true }],
    [["--acp"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["-p", "Write", "--allow-tool", "shell", "write"],
      start: [`--session-id=${SESSION}`, "-p", "Write", "--allow-tool", "shell", "write"],
      resume: ["--allow-tool", "shell", "write", `--resume=${SESSION}`, "-p", "NOTE"],
      restart: ["--allow-tool", "shell", "write", `--session-id=${SESSION}`, "-p", "NOTE\n\nWrite"],
    },
    {
      args: ["--model", "m"],
      start: [`--session-id=${SESSION}`, "--model", "m"],
      resume: ["--model", "m", `--resume=${SESSION}`, "-i", "NOTE"],
      restart: ["--model", "m", `--session-id=${SESSION}`, "-i", "NOTE"],
    },
    { args: ["login"], start: ["login"], resume: null, restart: ["login"] },
  ],
  disk: {
    [`${STATE}/${SESSION}/events.jsonl`]: { createdMs: 2000 },
    [`${STATE}/${SESSION}/workspace.yaml`]: { text: "id: x\ncwd: /home/Ann/my app.v2\n" },
    [`${STATE}/${SESSION}/inuse.12.lock`]: {},
    [`${STATE}/${SESSION}`]: { createdMs: 2000 },
    [`${STATE}/${OTHER_SESSION}/workspace.yaml`]: { text: "cwd: /home/Ann\n" },
    [`${STATE}/${OTHER_SESSION}`]: { createdMs: 3000 },
  },
  names: ["events.jsonl", "workspace.yaml"],
  found: [SESSION],
  hostileNames: ["inuse.12.lock", ".x", "a/b/c/d"],
  golden: { resumed: { turn: 6, open: [], isFinished: true, damagedLines: 0 } },
  hooks: [
    ["sessionStart", { ...common, source: "new" }, [{ kind: "session", session: SESSION, transcript: null }]],
    ["userPromptSubmitted", { ...common, prompt: "x" }, [{ kind: "prompt" }]],
    ["preToolUse", { ...common, ...tool }, [{ kind: "tool-start", call }]],
    ["postToolUse", { ...common, ...tool, toolResult: {} }, [{ kind: "tool-end", call }]],
    ["agentStop", { ...common, stopReason: "end_turn" }, [{ kind: "turn-end" }]],
    ["sessionEnd", { ...common, reason: "complete" }, [{ kind: "session-end", reason: "complete" }]],
    ["errorOccurred", { ...common, recoverable: true }, []],
  ],
  prints: [
    ["quota", "429 Rate limit reached for requests. Please try again in 600s."],
    ["permanent", "400 This model's maximum context length is 128000 tokens."],
    ["quota", "Failed to get response from the AI model; retried 5 times. Last error: 429 slow down"],
    ["overload", "Failed to get response from the AI model; retried 5 times. Last error: 529 Overloaded"],
    ["auth", "Authentication failed with provider at http://host/v1 (HTTP 401)."],
    ["unknown-session", `Error: No session, task, or name matched '${SESSION}'.`],
    [null, "I fixed the handling of error 429."],
  ],
  settings: null,
};
