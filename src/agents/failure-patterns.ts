// Parts of the patterns that several agents share. A pattern is for one line of output, without regard to case.
import type { FailurePatterns, PatternClass } from "./adapter.ts";
import { PATTERN_CLASSES } from "./adapter.ts";

export const NETWORK =
  "(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_\\w+|fetch failed" +
  "|socket hang up|connection (?:error|refused|reset|closed)|unable to connect|request timed out|dns error)";
/** An uncaught exception of a JavaScript program, and the details that Node prints below it. */
export const NODE_NETWORK = [`^\\s*(?:\\[cause\\]: )?\\w*Error: .*${NETWORK}`, `^\\s*code: '${NETWORK}'`];

/** The class of a short message that a hook reported; undefined when no pattern matches. */
export function classifyMessage(message: string, patterns: FailurePatterns): PatternClass | undefined {
  const lines = message.slice(0, 2000).split("\n");
  return PATTERN_CLASSES.find((each) =>
    patterns[each]?.some((pattern) => lines.some((line) => new RegExp(pattern, "i").test(line))),
  );
}
