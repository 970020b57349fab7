import { describe, expect, test } from "vitest";
import { parseReset, quotaResetMs, retryAfterMs } from "./quota.ts";

const NOW = Date.UTC(2026, 10, 16, 1, 20, 0);
const at = (iso: string) => Date.parse(iso);
const MINUTE = 60_000;

const LINES: [line: string, resetMs: number | null][] = [
  ["Claude AI usage limit reached|1794798000", 1_794_798_000_000],
  ["You've hit your session limit · resets 3:10am (UTC)", at("2026-11-16T03:10:00Z")],
  ["You've hit your limit · resets 12am (Europe/Berlin)", at("2026-11-16T23:00:00Z")],
  ["You've hit your weekly limit · resets Nov 18, 9am (UTC)", at("2026-11-18T09:00:00Z")],
  ["5-hour limit reached ∙ resets 1am", at("2026-11-17T01:00:00Z")],
  ["You've hit your usage limit. Try again in 3 days 2 hours 5 minutes.", NOW + (74 * 60 + 5) * MINUTE],
  ["You've hit your usage limit. Upgrade to Pro or try again at 4:30 PM.", at("2026-11-16T16:30:00Z")],
  ["stream error: exceeded retry limit, last status: 429 Too Many Requests", null],
  ["Rate limit reached for gpt-5: Please try again in 11.054s.", NOW + 11_054],
  ["HTTP/2 429\nretry-after: 120", NOW + 120_000],
  ["< Retry-After: 3600", NOW + 3_600_000],
  ["Retry-After: Mon, 16 Nov 2026 05:00:00 GMT", at("2026-11-16T05:00:00Z")],
  ['{"error":{"status":"RESOURCE_EXHAUSTED","retryDelay":"in 42s"}}', NOW + 42_000],
  [
    "Quota exceeded for quota metric 'requests'; quota resets at 2026-11-16T08:00:00Z",
    at("2026-11-16T08:00:00Z"),
  ],
  ["error: insufficient_quota", null],
  ["API Error: 429 {}", null],
  ["the server answered with status code 429", null],
];

const resetOf = (line: string, group?: string) => quotaResetMs({ line, group }, NOW);

describe("the reset of a quota", () => {
  test.each(LINES)("%s", (line, resetMs) => {
    expect(resetOf(line)).toBe(resetMs);
  });

  test("is in the pattern's group, if it has one", () => {
    expect(resetOf("at 2026-11-16 09:00: budget is spent", "2026-11-16 02:00")).toBe(
      at("2026-11-16T02:00:00Z"),
    );
  });

  test("may be a duration in the group", () => {
    expect(resetOf("budget is spent for 2 hours", "2 hours")).toBe(NOW + 120 * MINUTE);
  });

  test("is never in the past or more than eight days ahead", () => {
    expect(resetOf("usage limit reached, resets at 2020-01-01T00:00:00Z")).toBe(NOW);
    expect(resetOf("usage limit reached, try again in 900 days")).toBe(NOW + 8 * 24 * 60 * MINUTE);
  });

  test("may be in another line of the same output", () => {
    const lines = ["TerminalQuotaError: exhausted", "Suggested retry after 600s.", "  status: 429", "}"];
    expect(retryAfterMs(lines, NOW)).toBe(NOW + 600_000);
    expect(retryAfterMs(["it took 5 minutes", "status: 429"], NOW)).toBeNull();
  });

  test("a line without a time has none", () => {
    expect(parseReset("usage limit reached", NOW)).toBeUndefined();
  });
});
