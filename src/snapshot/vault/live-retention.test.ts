import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkpointRef, KEEP_NOTHING } from "../../../test/snapshot/checkpoint-refs.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { DEFAULT_RETENTION } from "../settings.ts";
import { retain } from "./retention.ts";

const NOW = Date.UTC(2026, 10, 15, 23, 53, 1);
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const NONE = KEEP_NOTHING;

function point(id: string, createdAtMs: number, extra: Partial<CheckpointRef> = {}): CheckpointRef {
  return checkpointRef(id, createdAtMs, { reason: "live", ...extra });
}

/** A live point every `stepMs` up to `untilMs`, oldest first. */
function every(stepMs: number, forMs: number, untilMs = NOW): CheckpointRef[] {
  const count = Math.floor(forMs / stepMs);
  return Array.from({ length: count }, (_, i) => point(`l${i}`, untilMs - (count - 1 - i) * stepMs));
}

const ids = (refs: readonly CheckpointRef[]) => refs.map(({ id }) => id);
const isLive = ({ reason }: CheckpointRef) => reason === "live";

describe("retention of live points", () => {
  it("keeps all of the last hour, then the newest per 10 minutes, hour and day, and none after a month", () => {
    const { keep, remove, reasons } = retain(every(MINUTE, 40 * DAY), NONE, NOW);
    const keptBy = Object.groupBy(keep, ({ id }) => reasons.get(id)!.find((why) => why.startsWith("live"))!);
    const counts = Object.entries(keptBy).map(([rule, refs]) => [rule, refs!.length]);
    // A tier includes the whole bucket in which it ends: it is 22:50 for the first and 23:00 a day ago for the second.
    expect(counts).toEqual([
      ["live: daily", 23],
      ["live: hourly", 167],
      ["live: every 10 minutes", 143],
      ["live: last hour", 64],
    ]);
    expect(reasons.get(remove[0]!.id)).toEqual(["no rule keeps it"]);
    expect(new Date(keep[0]!.createdAtMs).toISOString()).toBe("2026-10-16T23:59:01.000Z");
  });

  it("does not let a day of live points evict the others", () => {
    const manual = [30, 29, 28].map((hours) =>
      point(`m${hours}`, NOW - hours * HOUR, { reason: "manual", message: "by hand" }),
    );
    const refs = [...manual, ...every(10 * SECOND, DAY)];
    expect(ids(retain(refs, { ...NONE, keep_last: 3 }, NOW).keep.filter((ref) => !isLive(ref)))).toEqual(
      ids(manual),
    );
  });

  it("is not extended by the rules for the others", () => {
    const refs = every(5 * MINUTE, 3 * HOUR);
    const wide = { ...NONE, keep_last: 99, keep_hourly: 99, keep_within_seconds: 99_999 };
    expect(retain(refs, wide, NOW).keep).toEqual(retain(refs, NONE, NOW).keep);
  });

  it("never removes one with a message, a pin or the newest proof, even above max_bytes", () => {
    const refs = [
      point("plain", NOW - 90 * DAY),
      point("named", NOW - 80 * DAY, { message: "it worked here" }),
      point("pinned", NOW - 70 * DAY, { pinned: true }),
      point("proven", NOW - 60 * DAY, { provenAtMs: NOW }),
      point("young", NOW - MINUTE),
      point("newest", NOW),
    ];
    const plan = retain(refs, { ...DEFAULT_RETENTION, max_bytes: 1 }, NOW, ({ id }) => [
      { digest: id, size: 10 },
    ]);
    expect(ids(plan.keep)).toEqual(["named", "pinned", "proven", "newest"]);
    expect(plan.reasons.get("named")).toEqual(["live with a message"]);
  });

  it("has something to remove at most once in 10 minutes", () => {
    let refs = every(10 * SECOND, 3 * HOUR);
    let prunes = 0;
    for (let nowMs = NOW; nowMs <= NOW + 2 * HOUR; nowMs += 10 * SECOND) {
      refs = [...refs, point(`n${nowMs}`, nowMs)];
      const { keep, remove } = retain(refs, DEFAULT_RETENTION, nowMs);
      if (remove.length > 0) prunes += 1;
      refs = [...keep];
    }
    expect(prunes).toBeLessThanOrEqual(13);
    expect(refs.length).toBeLessThan(500);
  });

  const anyDraft = fc.record({
    ageMs: fc.oneof(
      fc.integer({ min: -HOUR, max: 2 * HOUR }),
      fc.integer({ min: 0, max: 2 * DAY }),
      fc.integer({ min: 0, max: 50 * DAY }),
    ),
    isLive: fc.boolean(),
    rare: fc.integer({ min: 0, max: 19 }),
  });
  const anyRefs = fc.array(anyDraft, { maxLength: 120 }).map((drafts) =>
    drafts
      .sort((a, b) => b.ageMs - a.ageMs)
      .map(({ ageMs, isLive: live, rare }, i) =>
        point(`c${i}`, NOW - ageMs, {
          reason: live ? "live" : "manual",
          pinned: rare === 0,
          message: rare === 1 ? "named" : null,
          provenAtMs: rare === 2 ? NOW : null,
        }),
      ),
  );
  const anyPolicy = fc.record({
    keep_last: fc.nat(10),
    keep_hourly: fc.nat(10),
    keep_daily: fc.nat(10),
    keep_weekly: fc.nat(10),
    keep_within_seconds: fc.nat(100_000),
    max_bytes: fc.constant(0),
  });

  it("keeps all of the last hour, and removes nothing more at the same time", () => {
    fc.assert(
      fc.property(anyRefs, anyPolicy, (refs, policy) => {
        const { keep } = retain(refs, policy, NOW);
        for (const ref of refs) if (isLive(ref) && NOW - ref.createdAtMs <= HOUR) expect(keep).toContain(ref);
        expect(retain(keep, policy, NOW).remove).toEqual([]);
      }),
    );
  });

  it("decides about the others as if there were no live points", () => {
    const protections = ["newest", "latest", "newest proven"];
    fc.assert(
      fc.property(anyRefs, anyPolicy, (refs, policy) => {
        const others = refs.filter((ref) => !isLive(ref));
        const mixed = retain(refs, policy, NOW);
        const alone = retain(others, policy, NOW);
        // A live point that is the newest, or the newest proven, gets that protection.
        const isExempt = ({ id }: CheckpointRef) =>
          alone.reasons.get(id)!.every((why) => protections.includes(why));
        const fates = ({ keep }: typeof mixed) => ids(keep.filter((ref) => !isLive(ref) && !isExempt(ref)));
        expect(fates(mixed)).toEqual(fates(alone));
      }),
    );
  });

  it("keeps the same points whether it is applied repeatedly or once at the end", () => {
    fc.assert(
      fc.property(anyRefs, fc.array(fc.nat(40 * DAY), { maxLength: 5 }), (refs, laterMs) => {
        const live = refs.filter((ref) => isLive(ref) && ref.provenAtMs === null);
        const times = laterMs.sort((a, b) => a - b).map((ms) => NOW + ms);
        let stepwise: readonly CheckpointRef[] = live;
        for (const ms of times) stepwise = retain(stepwise, NONE, ms).keep;
        expect(stepwise).toEqual(times.length === 0 ? live : retain(live, NONE, times.at(-1)!).keep);
      }),
    );
  });
});
