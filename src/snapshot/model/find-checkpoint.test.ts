import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkpointRef } from "../../../test/snapshot/checkpoint-refs.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { Reason } from "./entry.ts";
import { findCheckpoint, parseMoment } from "./find-checkpoint.ts";

const NOON = Date.UTC(2026, 10, 15, 12, 0, 0, 250);
const HOUR_MS = 3_600_000;

const ref = (id: string, createdAtMs: number, reason: Reason = "manual") =>
  checkpointRef(id, createdAtMs, { reason });

const REFS = [
  ref("20261115-090000-aaaaaa", NOON - 3 * HOUR_MS),
  ref("20261115-110000-bbbbbb", NOON - HOUR_MS),
  ref("20261115-120000-cccccc", NOON),
  ref("20261115-120001-dddddd", NOON + 1000, "pre-restore"),
];

const find = (text: string | undefined, refs = REFS) =>
  findCheckpoint(refs, { mission: "m", text, nowMs: NOON + HOUR_MS }).id.slice(-6);

function failure(text: string, refs = REFS): LazarusError {
  try {
    find(text, refs);
  } catch (error) {
    if (error instanceof LazarusError) return error;
    throw error;
  }
  throw new Error(`${text} was found`);
}

describe("findCheckpoint", () => {
  it("accepts an id, a unique prefix, and latest", () => {
    expect(find("20261115-110000-bbbbbb")).toBe("bbbbbb");
    expect(find("20261115-11")).toBe("bbbbbb");
    expect(find("latest")).toBe("cccccc");
    expect(find(undefined)).toBe("cccccc");
  });

  it("treats the last one of the index as the latest, even after the clock was set back", () => {
    expect(find("latest", [...REFS, ref("20261115-100000-eeeeee", NOON - 2 * HOUR_MS)])).toBe("eeeeee");
  });

  it("finds a safety checkpoint only by id, unless there is no other", () => {
    expect(find("20261115-120001")).toBe("dddddd");
    expect(find("now")).toBe("cccccc");
    expect(find("latest", [REFS[3]!])).toBe("dddddd");
  });

  it("accepts the end of an id, if no other checkpoint has it", () => {
    expect(find("bbbbbb")).toBe("bbbbbb");
    expect(find("0-cccccc")).toBe("cccccc");
    const twins = [...REFS, ref("20261115-120500-0abbbb", NOON + 5000)];
    expect(failure("bbbb", twins).message).toMatch(
      /"bbbb" is the end of 2 checkpoints of m; nearest: .*0abbbb/,
    );
  });

  it("prefers a time to the end of an id", () => {
    const refs = [...REFS, ref("20261115-120500-aaaa1h", NOON + HOUR_MS)];
    expect(find("1h", refs)).toBe("cccccc");
  });

  it("prefers the whole random part of an id to a time", () => {
    const refs = [...REFS, ref("20261115-120500-12345s", NOON + 5000)];
    expect(find("12345s", refs)).toBe("12345s");
    expect(find("12345s")).toBe("aaaaaa");
  });

  it("refuses a time in the future, unless a checkpoint is there", () => {
    for (const text of ["2027-11-15", "2026-11-16", "2026-11-15 13:01", "today 14:00"]) {
      expect(failure(text).message, text).toContain(`"${text}" is in the future; nearest: 20261115-120001`);
    }
    expect(find("2026-11-15 13:00")).toBe("cccccc");
    expect(find("2026-11-16", [...REFS, ref("20261116-120000-eeeeee", NOON + 24 * HOUR_MS)])).toBe("eeeeee");
  });

  it("refuses an amount of any size that is before all checkpoints", () => {
    for (const text of ["99999999999h", `${"9".repeat(400)}d`]) {
      expect(failure(text).message).toContain(
        "mission m has no checkpoint from 1970-01-01 00:00:00Z or before",
      );
    }
  });

  it("accepts times: the newest checkpoint at or before that time", () => {
    expect(find("2h ago")).toBe("bbbbbb");
    expect(find("61 minutes ago")).toBe("bbbbbb");
    expect(find("1 hour ago")).toBe("cccccc");
    expect(find("2026-11-15T10:30:00Z")).toBe("aaaaaa");
    expect(find("2026-11-15 12:30:00+0200")).toBe("aaaaaa");
    expect(find("2026-11-15")).toBe("cccccc");
  });

  it("finds a checkpoint by the time that a listing prints for it", () => {
    for (const each of REFS.slice(0, 3)) {
      const printed = `${new Date(each.createdAtMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
      expect(find(printed)).toBe(each.id.slice(-6));
    }
  });

  it("suggests the nearest checkpoints when none or several match", () => {
    expect(failure("20261115-12").message).toContain("a prefix of 2 checkpoints");
    expect(failure("20261115-12").message).toContain("20261115-120000-cccccc");
    const typo = failure("20261115-110000-bbbxxx");
    expect(typo.code).toBe("CHECKPOINT_UNKNOWN");
    expect(typo.message).toContain(
      'mission m has no checkpoint "20261115-110000-bbbxxx"; nearest: 20261115-110000-bbbbbb',
    );
    expect(typo.hint).toBe("lazarus checkpoints m");
    expect(failure("2026-11-14").message).toContain(
      "mission m has no checkpoint from 2026-11-14 23:59:59Z or before; nearest: 20261115-090000-aaaaaa",
    );
    expect(failure("latest", []).hint).toBe("lazarus checkpoint m");
    expect(failure("").code).toBe("CHECKPOINT_UNKNOWN");
  });

  it("finds every checkpoint by every unique prefix", () => {
    const id = fc.stringMatching(/^[0-9a-z]{4,8}$/);
    fc.assert(
      fc.property(
        fc.uniqueArray(id, { minLength: 1, maxLength: 12 }),
        fc.nat(),
        fc.nat(),
        (ids, pick, cut) => {
          const refs = ids.map((each, i) => ref(`2026-${each}`, i));
          const wanted = refs[pick % refs.length]!;
          const beginning = wanted.id.slice(0, 6 + (cut % (wanted.id.length - 5)));
          const alike = refs.filter((each) => each.id.startsWith(beginning));
          if (alike.length > 1 && beginning !== wanted.id) {
            expect(() => findCheckpoint(refs, { mission: "m", text: beginning, nowMs: 0 })).toThrow(
              LazarusError,
            );
          } else expect(findCheckpoint(refs, { mission: "m", text: beginning, nowMs: 0 })).toBe(wanted);
        },
      ),
    );
  });
});

describe("parseMoment", () => {
  it("returns the end of the given span", () => {
    expect(parseMoment("2026-11-15", 0)).toBe(Date.UTC(2026, 10, 16) - 1);
    expect(parseMoment("2026-11-15 10:00", 0)).toBe(Date.UTC(2026, 10, 15, 10, 1) - 1);
    expect(parseMoment("2026-11-15T10:00:05Z", 0)).toBe(Date.UTC(2026, 10, 15, 10, 0, 6) - 1);
    expect(parseMoment("2026-11-15T10:00:05.250Z", 0)).toBe(Date.UTC(2026, 10, 15, 10, 0, 5, 250));
  });

  it("knows leap days", () => {
    expect(parseMoment("2028-02-29", 0)).toBe(Date.UTC(2028, 2, 1) - 1);
  });

  it("adds up amounts", () => {
    expect(parseMoment("1d12h ago", NOON)).toBe(NOON - 36 * HOUR_MS);
    expect(parseMoment("1 day, 6 hours ago", NOON)).toBe(NOON - 30 * HOUR_MS);
    expect(parseMoment("1.5 hours ago", NOON)).toBe(NOON - 1.5 * HOUR_MS);
    expect(parseMoment("10m", NOON)).toBe(NOON - HOUR_MS / 6);
    expect(parseMoment("1h30m", NOON)).toBe(NOON - 1.5 * HOUR_MS);
  });

  it("takes a time of day as its most recent occurrence", () => {
    const at = (day: number, hour: number, minute: number) => Date.UTC(2026, 10, day, hour, minute, 59, 999);
    expect(parseMoment("11:30", NOON)).toBe(at(15, 11, 30));
    expect(parseMoment("12:00", NOON)).toBe(at(15, 12, 0));
    expect(parseMoment("12:01", NOON)).toBe(at(14, 12, 1));
    expect(parseMoment("14:30", NOON)).toBe(at(14, 14, 30));
    expect(parseMoment("today 14:30", NOON)).toBe(at(15, 14, 30));
    expect(parseMoment("yesterday 09:05", NOON)).toBe(at(14, 9, 5));
    expect(parseMoment("09:05:07", NOON)).toBe(Date.UTC(2026, 10, 15, 9, 5, 7, 999));
    expect(parseMoment("9:05", NOON)).toBe(at(15, 9, 5));
    expect(parseMoment("12:00:30", NOON)).toBe(Date.UTC(2026, 10, 14, 12, 0, 30, 999));
    expect(parseMoment("25:00", NOON)).toBeUndefined();
    expect(parseMoment("yesterday", NOON)).toBe(NOON - 24 * HOUR_MS);
  });

  it("returns undefined for other words", () => {
    for (const text of [
      "soon",
      "2 fortnights ago",
      "ago",
      "2026-13-01",
      "2026-02-29",
      "2026-02-30 10:00",
      "2026-04-31",
      "12",
      "2026-11-15T1",
      "h ago",
      "5 ago",
    ]) {
      expect(parseMoment(text, NOON), text).toBeUndefined();
    }
  });
});
