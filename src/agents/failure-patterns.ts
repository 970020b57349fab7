// Parts of the patterns that several agents share. A pattern is for one line of output, without regard to case.
import type { FailurePatterns, PatternClass } from "./adapter.ts";
import { PATTERN_CLASSES } from "./adapter.ts";

export const NETWORK =
  "(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_\\w+|fetch failed" +
  "|socket hang up|connection (?:error|refused|reset|closed)|unable to connect|request timed out|dns error)";
/** An uncaught exception of a program in JavaScript, and the details that Node prints below it. */
export const NODE_NETWORK = [`^\\s*(?:\\[cause\\]: )?\\w*Error: .*${NETWORK}`, `^\\s*code: '${NETWORK}'`];

/** Of agents whose adapter does not exist yet, by program name. */
export const PATTERNS_WITHOUT_ADAPTER: Readonly<Record<string, FailurePatterns>> = {
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
  qwen: {
    quota: ["^\\[api error: 429\\b"],
    overload: ["^\\[api error: 5\\d\\d\\b", `^\\[api error: .*${NETWORK}`, ...NODE_NETWORK],
    auth: ["^\\[api error: 40[13]\\b"],
  },
};

/** The class of a short message that a hook reported; undefined when no pattern knows it. */
export function classifyMessage(message: string, patterns: FailurePatterns): PatternClass | undefined {
  const lines = message.slice(0, 2000).split("\n");
  return PATTERN_CLASSES.find((each) =>
    patterns[each]?.some((pattern) => lines.some((line) => new RegExp(pattern, "i").test(line))),
  );
}
