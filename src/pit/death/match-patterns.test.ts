// The patterns of known agents, and the engine that runs patterns in a worker thread.
import { describe, expect, test } from "vitest";
import { PATTERN_CLASSES, type PatternClass } from "../../agents/adapter.ts";
import { failurePatterns } from "../../agents/adapters.ts";
import { type Pattern, searchPatterns } from "./match-patterns.ts";

const patternsOf = (agent: string): Pattern[] =>
  PATTERN_CLASSES.flatMap((each) =>
    (failurePatterns(agent)[each] ?? []).map((pattern) => ({ class: each, pattern })),
  );

const AGENTS = ["claude", "codex", "gemini", "opencode", "pi", "qwen", "copilot"];

const PRINTED: [agent: string, found: PatternClass, lines: string[]][] = [
  ["claude", "quota", ["API Error: Request rejected (429) · This may be a temporary capacity issue"]],
  ["claude", "quota", ["Claude AI usage limit reached|1794798000"]],
  ["claude", "quota", ["You've hit your session limit · resets 3:10am (UTC)"]],
  ["claude", "quota", ["5-hour limit reached ∙ resets 1am"]],
  ["claude", "overload", ["API Error: 529 Overloaded. This is a server-side issue, usually temporary"]],
  ["claude", "overload", ["API Error: Unable to connect to API (ECONNREFUSED)"]],
  ["claude", "auth", ["Failed to authenticate. API Error: 401 {}"]],
  ["claude", "auth", ["Not logged in · Please run /login"]],
  ["codex", "quota", ["ERROR: exceeded retry limit, last status: 429 Too Many Requests"]],
  ["codex", "overload", ["ERROR: unexpected status 529 <unknown status code>: Overloaded"]],
  ["codex", "auth", ["ERROR: unexpected status 401 Unauthorized: "]],
  ["gemini", "quota", ["ApiError: {}", "    at throwErrorIfNotOK (file.js:1)", "  status: 429", "}"]],
  ["gemini", "overload", ["  status: 503", "}"]],
  ["gemini", "overload", ["TypeError: fetch failed", "    at x (y.js:1)", "  code: 'ENOTFOUND'"]],
  ["opencode", "quota", ["\u001b[91m\u001b[1mError: \u001b[0mRate limit reached for gpt-5"]],
  ["opencode", "overload", ["Error: Overloaded"]],
  ["pi", "quota", ["429 {}"]],
  ["pi", "overload", ["529 Overloaded"]],
  ["qwen", "overload", ["[API Error: 529 Overloaded]"]],
  [
    "copilot",
    "quota",
    [
      "Failed to get response from the AI model; retried 5 times (total wait 62 s) Last error: 429 slow down",
      "Total usage est: 0 requests",
      "Resume  copilot --resume=0c6a",
    ],
  ],
];

describe("what a known agent prints", () => {
  test.each(PRINTED)("%s: %s", async (agent, found, lines) => {
    expect((await searchPatterns(lines, patternsOf(agent))).words?.class).toBe(found);
  });

  test.each(AGENTS)("%s: ignores other lines", async (agent) => {
    const lines = [
      "PASS test/rate-limit.test.ts (resets after 7 days)",
      "write: ENOSPC: no space left on device",
      "I fixed the handling of API Error: 529 and of ECONNREFUSED.",
      '  File "agent.py", line 429, in <module>',
      "Segmentation fault (core dumped)",
    ];
    expect((await searchPatterns(lines, patternsOf(agent))).words).toBeUndefined();
  });

  test("is matched without catastrophic backtracking", async () => {
    const starts = ["api error ", "error: ", "you've hit your ", "failed to get response from the ai model;"];
    const lines = starts.flatMap((start) =>
      ["a ", "last error: ", "[cause]: Error: ", "-"].map((part) =>
        (start + part.repeat(1000)).slice(0, 2000),
      ),
    );
    const all = AGENTS.flatMap(patternsOf);
    expect((await searchPatterns(lines, all, { slow: new Set() })).skipped).toEqual([]);
  });
});

describe("patterns", () => {
  const quota = (pattern: string): Pattern => ({ class: "quota", pattern });
  const auth = (pattern: string): Pattern => ({ class: "auth", pattern });

  test("the newest line is used, and the first pattern that matches it", async () => {
    const lines = ["limit until 3pm", "limit until 4pm", "bye"];
    const { words } = await searchPatterns(lines, [quota("limit until (.*)"), auth("limit"), auth("3pm")]);
    expect(words).toEqual({ class: "quota", line: "limit until 4pm", group: "4pm" });
  });

  test("one that takes too long is skipped, named once as new, and not tried again", async () => {
    const slow = new Set<string>();
    const evil = quota("(a+)+$");
    const lines = ["spent", `${"a".repeat(60)}!`];
    const patterns = [auth("a!$"), evil, quota("^spent")];
    const first = await searchPatterns(lines, patterns, { slow });
    expect(first).toEqual({
      words: { class: "auth", line: lines[1], group: undefined },
      skipped: [evil],
      newlySkipped: [evil],
    });
    const again = await searchPatterns(lines, patterns.slice(1), { slow });
    expect(again).toMatchObject({ words: { line: "spent" }, skipped: [evil], newlySkipped: [] });
  });

  test("several that take too long end the search", async () => {
    const many = Array.from({ length: 9 }, (_, n) => quota(`(a+)+$|${n}`));
    const { newlySkipped } = await searchPatterns([`${"a".repeat(60)}!`], many, {
      deadlineMs: 20,
      slow: new Set(),
    });
    expect(newlySkipped).toHaveLength(5);
  });

  test("without lines or patterns there is nothing to find", async () => {
    const nothing = { words: undefined, skipped: [], newlySkipped: [] };
    expect(await searchPatterns([], [quota("x")])).toEqual(nothing);
    expect(await searchPatterns(["x"], [])).toEqual(nothing);
  });
});
