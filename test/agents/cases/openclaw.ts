import { openclaw } from "../../../src/agents/adapters/openclaw.ts";
import { type AdapterCases, SESSION } from "./case.ts";

const DATABASE = "/home/Ann/.openclaw/agents/main/agent/openclaw-agent.sqlite";

export const cases: AdapterCases = {
  adapter: openclaw,
  session: SESSION,
  commands: [["npx", "openclaw", "agent", "--local", "-m", "x"]],
  parse: [
    [
      ["agent", "--local", "-m", "Write"],
      { isHeadless: true, prompt: "Write", session: null, isUtility: false },
    ],
    [["agent", "--local", "--session-id", "a", "-m", "x"], { session: { id: "a" } }],
    [["agent", "--local", "--to", "+1555", "-m", "x"], { session: "newest" }],
    // The gateway does the work.
    [["agent", "-m", "x"], { isUtility: true }],
    [["gateway", "run"], { isUtility: true }],
  ],
  lives: [
    {
      args: ["--profile", "p", "agent", "--local", "-m", "Write"],
      start: ["--profile", "p", "agent", "--local", "-m", "Write", "--session-id", SESSION],
      resume: ["--profile", "p", "agent", "--local", "--session-id", SESSION, "-m", "NOTE"],
      restart: ["--profile", "p", "agent", "--local", "--session-id", SESSION, "-m", "NOTE\n\nWrite"],
    },
    { args: ["status"], start: ["status"], resume: null, restart: ["status"] },
  ],
  disk: { [DATABASE]: {} },
  names: ["openclaw-agent.sqlite"],
  found: [],
  hostileNames: ["openclaw-agent.sqlite"],
  golden: { resumed: { turn: 6, open: [], isFinished: true, damagedLines: 0 } },
  hooks: [],
  prints: [
    ["quota", "⚠️ mock/mock request failed (rate limited, HTTP 429). Try again later."],
    [
      "auth",
      "⚠️ mock/mock request failed (authentication failed, HTTP 401). Re-authenticate the provider and try again.",
    ],
    [
      "auth",
      "[model-fallback/decision] model fallback decision: decision=candidate_failed requested=mock/mock candidate=mock/mock " +
        "reason=auth next=none detail=401 Incorrect API key provided: dummy.",
    ],
    [
      null,
      "[model-fallback/decision] model fallback decision: decision=candidate_failed requested=mock/mock candidate=mock/mock " +
        "reason=auth next=mock/other detail=401 Incorrect API key provided: dummy.",
    ],
    [
      "auth",
      "Authentication failed (provider returned HTTP 401). Your provider token may have expired — try the request again in a moment. If the failure persists, re-authenticate this provider.",
    ],
    [
      "auth",
      'No API key found for provider "anthropic". Auth store: /home/Ann/.openclaw/agents/main/agent/openclaw-agent.sqlite',
    ],
    [
      "permanent",
      "Context overflow: prompt too large for the model. Try /reset (or /new) to start a fresh session, or use a larger-context model.",
    ],
    [null, "[agent/embedded] auto-compaction failed for mock/mock: Nothing to compact (session too small)"],
    [null, "I fixed the handling of a request that failed with HTTP 429."],
  ],
  settings: null,
};
