import { opencode } from "../../../src/agents/adapters/opencode.ts";
import { type AdapterCases, OTHER_SESSION } from "./case.ts";

const SESSION = "ses_e128754d1ffeNPei3MoISnGSvS";
const call = { id: "toolu_1", tool: "bash", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: opencode,
  session: SESSION,
  commands: [["npx", "opencode-ai", "run", "x"]],
  parse: [
    [["run", "Write", "it"], { isHeadless: true, prompt: "Write it", session: null, isUtility: false }],
    [["run", "-i", "Write"], { isHeadless: false, prompt: "Write" }],
    [["--prompt", "Write", "some/project"], { isHeadless: false, prompt: "Write" }],
    [["run", "-c", "more"], { session: "newest", prompt: "more" }],
    [["run", "-s", SESSION, "more"], { session: { id: SESSION } }],
    [["run", "-s", SESSION, "--fork", "more"], { session: null }],
    [["session", "list"], { isUtility: true }],
    [["run", "--attach", "http://host", "x"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["run", "--model", "a/b", "--file", "x", "y", "--", "Write"],
      start: ["run", "--model", "a/b", "--file", "x", "y", "--", "Write"],
      resume: ["run", "--model", "a/b", "--file", "x", "y", "--session", SESSION, "--", "NOTE"],
      restart: ["run", "--model", "a/b", "--file", "x", "y", "--", "NOTE\n\nWrite"],
    },
    {
      args: ["-c", "--prompt", "Go", "dir"],
      start: ["-c", "--prompt", "Go", "dir"],
      resume: ["--session", SESSION, "dir"],
      restart: ["--prompt", "NOTE\n\nGo", "dir"],
    },
    { args: ["models"], start: ["models"], resume: null, restart: ["models"] },
  ],
  // The user's own database is not the mission's.
  disk: { "/home/Ann/.local/share/opencode/opencode.db": { createdMs: 2000 } },
  names: [],
  found: [],
  hostileNames: ["opencode.db", OTHER_SESSION],
  golden: { resumed: { turn: 6, open: [], isFinished: true, damagedLines: 0 } },
  hooks: [
    ["", { kind: "session", session: SESSION }, [{ kind: "session", session: SESSION, transcript: null }]],
    ["", { kind: "tool-start", call }, [{ kind: "tool-start", call }]],
    [
      "",
      { kind: "failure", message: "529 Overloaded" },
      [{ kind: "failure", class: "overload", message: "529 Overloaded" }],
    ],
  ],
  prints: [
    ["quota", "Error: This request would exceed your account's rate limit. Please try again later."],
    ["auth", "Error: invalid x-api-key"],
    ["permanent", "Error: prompt is too long: 214000 tokens > 200000 maximum"],
    ["quota", "Error: Rate limit reached for requests"],
    ["overload", "Error: Overloaded"],
    ["overload", "Error: Unable to connect. Is the computer able to access the url?"],
    ["auth", "Error: Unauthorized"],
    ["unknown-session", "Error: Session not found"],
    [null, "I fixed the handling of Error: 529 and ECONNREFUSED."],
  ],
  settings: null,
};
