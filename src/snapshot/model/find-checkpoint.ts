// Finds the checkpoint that a user names: by id, unique prefix or suffix, `latest` or time. Pure: list and time are
// parameters. A time covers its whole span, so that a time printed to the second finds its own checkpoint and a bare date
// means the end of that day. Times without a zone are UTC, like everything Lazarus prints. A time takes precedence over a
// suffix: `2d` is two days ago, even where an id ends like that. Only the whole random part of an id takes precedence over
// a time.
import { LazarusError } from "../../platform/errors.ts";
import type { CheckpointRef } from "./entry.ts";

export interface Lookup {
  readonly mission: string;
  /** What the user typed; undefined means `latest`. */
  readonly text: string | undefined;
  readonly nowMs: number;
}

const NAMED_LIMIT = 3;
/** Of the part of an id after its last dash. */
const RANDOM_LENGTH = 6;

/** What a time covers, in epoch milliseconds, both ends included. */
interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** The checkpoint that `text` means; `refs` are in the order of the index, oldest first. */
export function findCheckpoint(refs: readonly CheckpointRef[], lookup: Lookup): CheckpointRef {
  const { mission, nowMs } = lookup;
  const text = (lookup.text ?? "latest").trim();
  if (refs.length === 0) {
    throw new LazarusError("CHECKPOINT_UNKNOWN", `mission ${mission} has no checkpoints yet`, {
      hint: `lazarus checkpoint ${mission}`,
      details: { mission },
    });
  }
  // By the order of the index: a clock that was set back does not make an older checkpoint the latest.
  if (text === "latest") return (ordinary(refs).at(-1) ?? refs.at(-1))!;
  const byTime = [...refs].sort((a, b) => a.createdAtMs - b.createdAtMs);
  const exact = refs.find((ref) => ref.id === text);
  if (exact !== undefined) return exact;
  const matching = text === "" ? [] : byTime.filter((ref) => ref.id.startsWith(text));
  if (matching.length === 1) return matching[0]!;
  if (matching.length > 1) {
    throw unknown(
      `${quoted(text)} is a prefix of ${matching.length} checkpoints of ${mission}`,
      mission,
      text,
      matching,
    );
  }
  const named = refs.filter((ref) => text.length === RANDOM_LENGTH && ref.id.endsWith(`-${text}`));
  if (named.length === 1) return named[0]!;
  const span = parseSpan(text, nowMs);
  if (span === undefined) return findBySuffix(byTime, text, mission);
  const newest = byTime.at(-1)!;
  // A wrong year must not mean the latest. The newest checkpoint may be in the future, where the clock was set back.
  if (span.startMs > Math.max(nowMs, newest.createdAtMs))
    throw unknown(`${quoted(text)} is in the future`, mission, text, [newest]);
  const atMs = span.endMs;
  const before = byTime.filter((ref) => ref.createdAtMs <= atMs);
  const found = ordinary(before).at(-1) ?? before.at(-1);
  if (found !== undefined) return found;
  throw unknown(
    `mission ${mission} has no checkpoint from ${iso(atMs)} or before`,
    mission,
    text,
    byTime.slice(0, 1),
  );
}

/** The random end of an id is what people remember and copy. */
function findBySuffix(byTime: readonly CheckpointRef[], text: string, mission: string): CheckpointRef {
  const ending = text === "" ? [] : byTime.filter((ref) => ref.id.endsWith(text));
  if (ending.length === 1) return ending[0]!;
  const [problem, near] =
    ending.length > 1
      ? [`${quoted(text)} is the end of ${ending.length} checkpoints of ${mission}`, ending]
      : [`mission ${mission} has no checkpoint ${quoted(text)}`, nearestIds(byTime, text)];
  throw unknown(problem, mission, text, near);
}

/**
 * The last millisecond that `text` covers, in epoch milliseconds: ISO dates and times (`2026-11-15`,
 * `2026-11-15 23:53`, `2026-11-15T23:53:01Z`), `14:30` (the last time it was half past two), `10m`, `2h ago`,
 * `1 day 6 hours ago`, `yesterday`, `yesterday 14:30`, `now`. Undefined for the rest.
 */
export function parseMoment(text: string, nowMs: number): number | undefined {
  return parseSpan(text, nowMs)?.endMs;
}

function parseSpan(text: string, nowMs: number): Span | undefined {
  const words = text.trim().toLowerCase();
  if (words === "now") return instant(nowMs);
  if (words === "yesterday") return instant(nowMs - DAY_MS);
  return parseAgo(words, nowMs) ?? parseTimeOfDay(words, nowMs) ?? parseIso(text.trim());
}

function instant(ms: number): Span {
  return { startMs: ms, endMs: ms };
}

function parseTimeOfDay(words: string, nowMs: number): Span | undefined {
  const [, day, time] = /^(?:(today|yesterday) )?(\d{1,2}:\d{2}(?::\d{2})?)z?$/.exec(words) ?? [];
  if (time === undefined) return undefined;
  const on = (dayMs: number) =>
    parseIso(`${new Date(dayMs).toISOString().slice(0, 10)} ${time.replace(/^\d:/, "0$&")}`);
  if (day === "yesterday") return on(nowMs - DAY_MS);
  const today = on(nowMs);
  // 14:30 typed at 14:30:20 is today: its span has begun.
  const isAhead = today !== undefined && today.startMs > nowMs;
  return isAhead && day === undefined ? on(nowMs - DAY_MS) : today;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:s|secs?|seconds?)$/, SECOND_MS],
  [/^(?:m|mins?|minutes?)$/, MINUTE_MS],
  [/^(?:h|hrs?|hours?)$/, HOUR_MS],
  [/^(?:d|days?)$/, DAY_MS],
  [/^(?:w|weeks?)$/, 7 * DAY_MS],
];

function parseAgo(words: string, nowMs: number): Span | undefined {
  const amounts = /^(.+?)(?:\s*ago)?$/.exec(words)?.[1];
  if (amounts === undefined || !/^(?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*)+$/.test(amounts)) return undefined;
  let totalMs = 0;
  for (const [, count, word] of amounts.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)) {
    const unit = UNITS.find(([pattern]) => pattern.test(word!));
    if (unit === undefined) return undefined;
    totalMs += Number(count) * unit[1];
  }
  // Not before 1970: a Date cannot represent every amount that can be typed.
  return instant(Math.max(0, nowMs - totalMs));
}

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(\.\d{1,3})?\s*(Z|[+-]\d{2}:?\d{2})?)?$/i;

function parseIso(text: string): Span | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, date, minute = "00:00", second = ":00", fraction = "", zone = "Z"] = match;
  if (match[4] !== undefined && match[3] === undefined) return undefined;
  const offset = /^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone.toUpperCase();
  const startMs = Date.parse(`${date}T${minute}${second}${fraction}${offset}`);
  if (Number.isNaN(startMs) || !isDay(date!)) return undefined;
  const spanMs =
    match[2] === undefined
      ? DAY_MS
      : match[3] === undefined
        ? MINUTE_MS
        : match[4] === undefined
          ? SECOND_MS
          : 1;
  return { startMs, endMs: startMs + spanMs - 1 };
}

/** Date.parse reads 30 February as a day in March. */
function isDay(date: string): boolean {
  return new Date(Date.parse(date)).toISOString().startsWith(date);
}

/**
 * Without the safety checkpoints of restores: they hold a state that the user replaced, and are reached by `undo` or by
 * id.
 */
function ordinary(refs: readonly CheckpointRef[]): CheckpointRef[] {
  return refs.filter((ref) => ref.reason !== "pre-restore");
}

/** The checkpoints whose ids share the longest prefix with the text, newest first. */
function nearestIds(byTime: readonly CheckpointRef[], text: string): CheckpointRef[] {
  const shared = (id: string) => {
    let length = 0;
    while (length < text.length && id[length] === text[length]) length += 1;
    return length;
  };
  return [...byTime]
    .reverse()
    .sort((a, b) => shared(b.id) - shared(a.id))
    .slice(0, NAMED_LIMIT);
}

function unknown(what: string, mission: string, text: string, near: readonly CheckpointRef[]): LazarusError {
  const named = near.slice(-NAMED_LIMIT).map((ref) => `${ref.id} (${iso(ref.createdAtMs)}, ${ref.reason})`);
  return new LazarusError("CHECKPOINT_UNKNOWN", `${what}; nearest: ${named.join(", ")}`, {
    hint: `lazarus checkpoints ${mission}`,
    details: { mission, asked: text, nearest: near.map((ref) => ref.id) },
  });
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function iso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")}Z`;
}
