// When an exhausted quota resets, from the line that reports it. Pure.
import type { Words } from "./match-patterns.ts";

const MAX_RESET_MS = 8 * 24 * 3_600_000;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Never in the past, and never more than eight days ahead; null when the line names no time. The pattern's group, if it has
 * one, is the time.
 */
export function quotaResetMs({ line, group }: Pick<Words, "line" | "group">, nowMs: number): number | null {
  const resetMs =
    group === undefined
      ? parseReset(line, nowMs)
      : (parseReset(group, nowMs) ?? parseDuration(`in ${group}`, nowMs));
  if (resetMs === undefined) return null;
  return Math.min(Math.max(resetMs, nowMs), nowMs + MAX_RESET_MS);
}

/** "Retry after …" in another line of the same output, newest first; null when there is none. */
export function retryAfterMs(lines: readonly string[], nowMs: number): number | null {
  for (const line of lines.toReversed()) {
    const foundMs = parseRetryAfter(line, nowMs);
    if (foundMs !== undefined) return Math.min(Math.max(foundMs, nowMs), nowMs + MAX_RESET_MS);
  }
  return null;
}

/** The reset time that a line names; undefined when it names none. Times without a zone are UTC. */
export function parseReset(text: string, nowMs: number): number | undefined {
  return (
    parseRetryAfter(text, nowMs) ??
    parseIso(text) ??
    parseEpoch(text, nowMs) ??
    parseDuration(text, nowMs) ??
    parseClock(text, nowMs)
  );
}

function parseRetryAfter(text: string, nowMs: number): number | undefined {
  const value = /retry[-_ ]after(?:[-_ ](ms|seconds))?["']?\s*[:=]?\s*["']?([^"'}]+)/i.exec(text);
  if (value === null) return undefined;
  const amount = /^(\d+(?:\.\d+)?)\s*(ms|s|seconds?|m|minutes?|h|hours?)?\b/i.exec(value[2]!);
  if (amount !== null) {
    const unit = (value[1] === "ms" ? "ms" : amount[2]?.toLowerCase()) ?? "s";
    return nowMs + Number(amount[1]) * unitMs(unit);
  }
  const date = Date.parse(value[2]!.trim());
  return Number.isNaN(date) ? undefined : date;
}

function unitMs(unit: string): number {
  if (unit === "ms") return 1;
  if (unit.startsWith("d")) return DAY_MS;
  if (unit.startsWith("h")) return HOUR_MS;
  return unit.startsWith("m") ? MINUTE_MS : SECOND_MS;
}

function parseIso(text: string): number | undefined {
  const match = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/.exec(text);
  if (match === null) return undefined;
  const at = Date.parse(`${match[0].replace(" ", "T")}${match[1] === undefined ? "Z" : ""}`);
  return Number.isNaN(at) ? undefined : at;
}

/** Claude Code's machine form: `limit reached|1794787200`. */
function parseEpoch(text: string, nowMs: number): number | undefined {
  for (const match of text.matchAll(/\b(\d{10}|\d{13})\b/g)) {
    const ms = match[1]!.length === 13 ? Number(match[1]) : Number(match[1]) * SECOND_MS;
    if (Math.abs(ms - nowMs) < 31 * DAY_MS) return ms;
  }
  return undefined;
}

/** "try again in 3 days 2 hours 5 minutes", "resets in 2h 14m". */
function parseDuration(text: string, nowMs: number): number | undefined {
  const tail = /\b(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[,\s]*(?:and\s+)?)+)/i.exec(text)?.[1];
  if (tail === undefined) return undefined;
  let totalMs = 0;
  for (const match of tail.matchAll(
    /(\d+(?:\.\d+)?)\s*(ms|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)\b/gi,
  ))
    totalMs += Number(match[1]) * unitMs(match[2]!.toLowerCase());
  return totalMs > 0 ? nowMs + totalMs : undefined;
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** "resets 3pm (UTC)", "resets at 15:30", "reset at Nov 18, 9am", "resets 4:10am (Europe/Berlin)": the next such time. */
function parseClock(text: string, nowMs: number): number | undefined {
  const match =
    /(?:resets?|again|until|available)\b[^\d\n]*?(?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2}),?(?: at)? )?\b(\d{1,2})(?::(\d\d))?\s*([ap]m)?\b(?:\s*\(?([A-Za-z]+(?:\/[A-Za-z_]+)?)\)?)?/i.exec(
      text,
    );
  if (match === null) return undefined;
  const [, month, day, hourText, minuteText, meridiem, zone] = match;
  if (minuteText === undefined && meridiem === undefined) return undefined;
  let hour = Number(hourText);
  const minute = Number(minuteText ?? 0);
  if (hour > (meridiem ? 12 : 23) || minute > 59) return undefined;
  if (meridiem) hour = (hour % 12) + (meridiem.toLowerCase() === "pm" ? 12 : 0);
  const now = new Date(nowMs);
  const offsetMs = zoneOffsetMs(zone, nowMs);
  const local = new Date(nowMs + offsetMs);
  const atMs =
    Date.UTC(
      local.getUTCFullYear(),
      month ? MONTHS.indexOf(month.toLowerCase()) : local.getUTCMonth(),
      day ? Number(day) : local.getUTCDate(),
      hour,
      minute,
    ) - offsetMs;
  return atMs > now.getTime() || month !== undefined ? atMs : atMs + DAY_MS;
}

/** The offset of a named zone from UTC at that time; 0 for UTC and unknown names. */
function zoneOffsetMs(zone: string | undefined, atMs: number): number {
  if (zone === undefined || !zone.includes("/")) return 0;
  try {
    const parts = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    }).formatToParts(atMs);
    const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
    const localMs = Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second"));
    return localMs - Math.floor(atMs / SECOND_MS) * SECOND_MS;
  } catch {
    return 0;
  }
}
