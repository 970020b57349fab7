import { pi } from "../../../src/agents/adapters/pi.ts";
import { type AdapterCases, OTHER_SESSION, SESSION } from "./case.ts";

const DIRECTORY = "/home/Ann/.pi/agent/sessions/--home-Ann-my app.v2--";
const file = (session: string) => `2026-11-18T06-53-35-584Z_${session}.jsonl`;
const call = { id: "toolu_1", tool: "bash", summary: "git push", command: "git push" };

export const cases: AdapterCases = {
  adapter: pi,
  session: SESSION,
  commands: [["npx", "@mariozechner/pi-coding-agent", "-p", "x"]],
  parse: [
    [["-p", "Write"], { isHeadless: true, prompt: "Write", session: null, isUtility: false }],
    [["@plan.md", "Write"], { isHeadless: false, prompt: "Write" }],
    [["-c"], { session: "newest", prompt: null }],
    [["--session", SESSION, "more"], { session: { id: SESSION }, prompt: "more" }],
    [["--session", `/x/${file(SESSION)}`], { session: { id: SESSION } }],
    [["--session", "0b0c"], { session: "newest" }],
    [["install", "x"], { isUtility: true }],
    [["--list-models"], { isUtility: true }],
    [["-p", "x", "--no-session"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["--model", "m", "-nt", "-p", "@plan.md", "Write"],
      start: ["--model", "m", "-nt", "-p", "@plan.md", "Write"],
      resume: ["--model", "m", "--no-tools", "-p", "--session", SESSION, "NOTE"],
      restart: ["--model", "m", "--no-tools", "-p", "@plan.md", "NOTE\n\nWrite"],
    },
    { args: ["-c"], start: ["-c"], resume: ["--session", SESSION, "NOTE"], restart: ["NOTE"] },
    { args: ["list"], start: ["list"], resume: null, restart: ["list"] },
    { args: ["--mode", "rpc"], start: ["--mode", "rpc"], resume: null, restart: ["--mode", "rpc"] },
  ],
  disk: {
    [`${DIRECTORY}/${file(SESSION)}`]: { text: '{"cwd":"/home/Ann/my app.v2"}\n', createdMs: 2000 },
    [`${DIRECTORY}/${file(OTHER_SESSION)}`]: { text: '{"cwd":"/home-Ann/my app.v2"}\n', createdMs: 3000 },
    "/home/Ann/.pi/agent/auth.json": {},
  },
  names: [file(SESSION)],
  found: [SESSION],
  hostileNames: [file(OTHER_SESSION), `x/${file(SESSION)}`],
  golden: { resumed: { turn: 6, open: [], isFinished: true, damagedLines: 0 } },
  hooks: [
    [
      "",
      { kind: "session", session: SESSION, transcript: "/x" },
      [{ kind: "session", session: SESSION, transcript: "/x" }],
    ],
    ["", { kind: "tool-start", call }, [{ kind: "tool-start", call }]],
    ["", { kind: "tool-end", call }, [{ kind: "tool-end", call }]],
    ["", { kind: "turn-end" }, [{ kind: "turn-end" }]],
    [
      "",
      { kind: "failure", message: "429 slow down" },
      [{ kind: "failure", class: "quota", message: "429 slow down" }],
    ],
    ["", { kind: "failure", message: "what?" }, []],
  ],
  prints: [
    ["quota", '429 {"type":"error"}'],
    ["overload", "529 Overloaded"],
    ["auth", "401 Unauthorized"],
    ["unknown-session", `No session found matching '${SESSION}'`],
    [null, "I fixed the handling of 529 and ECONNREFUSED."],
  ],
  settings: null,
};
