// What known agents print when the provider refuses them, measured with their default settings. Plain data by program
// name, one regular expression per kind of line, matched without regard to case; the config adds the user's own.
import type { PatternClass } from "../../agents/adapter.ts";

export type AgentPatterns = Readonly<Partial<Record<PatternClass, readonly string[]>>>;

const NETWORK =
  "(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_\\w+|fetch failed" +
  "|socket hang up|connection (?:error|refused|reset|closed)|unable to connect|request timed out|dns error)";
/** An uncaught exception of a program in JavaScript, and the details that Node prints below it. */
const NODE_NETWORK = [`^\\s*(?:\\[cause\\]: )?\\w*Error: .*${NETWORK}`, `^\\s*code: '${NETWORK}'`];

export const AGENT_PATTERNS: Readonly<Record<string, AgentPatterns>> = {
  claude: {
    quota: [
      "^(?:claude ai )?usage limit reached",
      "^you've (?:hit|reached) your (?:[\\w-]+ )*limit",
      "^(?:[\\w-]+ )?limit reached\\b.*\\bresets\\b",
      "^api error: (?:request rejected \\()?429\\b",
    ],
    overload: ["^api error: 5\\d\\d\\b", `^api error\\b.*${NETWORK}`, ...NODE_NETWORK],
    auth: [
      "^failed to authenticate\\b",
      "^not logged in\\b",
      "^invalid api key\\b",
      "^api error: 40[13]\\b",
      "^credit balance is too low",
    ],
  },
  codex: {
    quota: [
      "^error: (?:exceeded retry limit, last|unexpected) status:? 429\\b",
      "^error: you've hit your usage limit",
      "^error: quota exceeded",
    ],
    overload: [
      "^error: (?:exceeded retry limit, last|unexpected) status:? 5\\d\\d\\b",
      `^error: .*(?:stream disconnected|error sending request|${NETWORK})`,
    ],
    auth: ["^error: (?:exceeded retry limit, last|unexpected) status:? 40[13]\\b", "^not logged in\\b"],
  },
  gemini: {
    quota: ['^\\s*"?(?:status|code)"?: 429\\b'],
    overload: ['^\\s*"?(?:status|code)"?: 5\\d\\d\\b', ...NODE_NETWORK],
    auth: ['^\\s*"?(?:status|code)"?: 40[13]\\b'],
  },
  opencode: {
    quota: ["^error: (?:rate limit reached|too many requests|quota exceeded)"],
    overload: [
      "^error: (?:overloaded|service unavailable|internal server error|bad gateway|gateway timeout)",
      `^error: .*${NETWORK}`,
    ],
    auth: ["^error: (?:unauthorized|invalid api key|incorrect api key)"],
  },
  pi: {
    quota: ["^(?:error: )?429 "],
    overload: ["^(?:error: )?5\\d\\d ", `^(?:error: )?${NETWORK}`, ...NODE_NETWORK],
    auth: ["^(?:error: )?40[13] "],
  },
  qwen: {
    quota: ["^\\[api error: 429\\b"],
    overload: ["^\\[api error: 5\\d\\d\\b", `^\\[api error: .*${NETWORK}`, ...NODE_NETWORK],
    auth: ["^\\[api error: 40[13]\\b"],
  },
  copilot: {
    quota: ["^failed to get response from the ai model;.* last error: 429\\b"],
    overload: [
      "^failed to get response from the ai model;.* last error: 5\\d\\d\\b",
      `^failed to get response from the ai model;.* last error: .*${NETWORK}`,
    ],
    auth: ["^failed to get response from the ai model;.* last error: 40[13]\\b"],
  },
};
