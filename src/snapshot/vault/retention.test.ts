import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkpointRef, KEEP_NOTHING } from "../../../test/snapshot/checkpoint-refs.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { DEFAULT_RETENTION } from "../settings.ts";
import { retain } from "./retention.ts";

const NOW = Date.UTC(2026, 10, 15, 23, 53, 1);
const HOUR = 3_600_000;

const NONE = KEEP_NOTHING;
const ref = checkpointRef;

const ids = (refs: readonly CheckpointRef[]) => refs.map(({ id }) => id);

describe("retention", () => {
  it("keeps the newest, the newest proven, the pinned and the undo of the latest restore under any policy", () => {
    const refs = [
      ref("pinned", NOW - 90 * HOUR, { pinned: true }),
      ref("old-undo", NOW - 80 * HOUR, { beforeRestoreOf: "pinned" }),
      ref("old-proof", NOW - 70 * HOUR, { provenAtMs: NOW }),
      ref("proof", NOW - 60 * HOUR, { provenAtMs: NOW }),
      ref("undo", NOW - 50 * HOUR, { beforeRestoreOf: "pinned" }),
      ref("plain", NOW - 40 * HOUR),
      ref("newest", NOW - 30 * HOUR),
    ];
    const plan = retain(refs, NONE, NOW);
    expect(ids(plan.keep)).toEqual(["pinned", "proof", "undo", "newest"]);
    expect(ids(plan.remove)).toEqual(["old-undo", "old-proof", "plain"]);
    expect(plan.reasons.get("proof")).toEqual(["newest proven"]);
    expect(plan.reasons.get("plain")).toEqual(["no rule keeps it"]);
  });

  it("keeps the newest of each hour, day and week that has any", () => {
    const day = 24 * HOUR;
    const refs = [21, 14, 7, 2, 1.02, 1, 0.1, 0.01, 0].map((days) => ref(`${days}`, NOW - days * day));
    expect(ids(retain(refs, { ...NONE, keep_hourly: 2 }, NOW).keep)).toEqual(["0.1", "0"]);
    expect(ids(retain(refs, { ...NONE, keep_daily: 3 }, NOW).keep)).toEqual(["2", "1", "0"]);
    expect(ids(retain(refs, { ...NONE, keep_weekly: 3 }, NOW).keep)).toEqual(["14", "7", "0"]);
    expect(ids(retain(refs, { ...NONE, keep_last: 2 }, NOW).keep)).toEqual(["0.01", "0"]);
    expect(ids(retain(refs, { ...NONE, keep_within_seconds: 86_400 }, NOW).keep)).toEqual([
      "1",
      "0.1",
      "0.01",
      "0",
    ]);
  });

  it("removes the oldest until the rest fits max_bytes, counting shared blobs once", () => {
    const refs = ["a", "b", "c", "d"].map((id, i) => ref(id, NOW - (4 - i) * HOUR));
    const blobs: Record<string, { digest: string; size: number }[]> = {
      a: [
        { digest: "base", size: 100 },
        { digest: "a", size: 10 },
      ],
      b: [
        { digest: "base", size: 100 },
        { digest: "b", size: 10 },
      ],
      c: [{ digest: "base2", size: 50 }],
      d: [
        { digest: "base2", size: 50 },
        { digest: "d", size: 5 },
      ],
    };
    const keep = (max: number) =>
      ids(retain(refs, { ...NONE, keep_last: 9, max_bytes: max }, NOW, ({ id }) => blobs[id]!).keep);
    expect(keep(175)).toEqual(["a", "b", "c", "d"]);
    expect(keep(165)).toEqual(["b", "c", "d"]);
    expect(keep(100)).toEqual(["c", "d"]);
    expect(keep(54)).toEqual(["d"]);
    expect(keep(1)).toEqual(["d"]);
  });

  const anyRef = fc.record({
    ageMs: fc.integer({ min: -HOUR, max: 100 * 24 * HOUR }),
    pinned: fc.boolean(),
    proven: fc.boolean(),
    undo: fc.boolean(),
  });
  const anyRefs = fc.array(anyRef, { maxLength: 60 }).map((drafts) =>
    drafts
      .sort((a, b) => b.ageMs - a.ageMs)
      .map(({ ageMs, pinned, proven, undo }, i) =>
        ref(`c${i}`, NOW - ageMs, {
          pinned: pinned && i % 5 === 0,
          provenAtMs: proven ? NOW : null,
          beforeRestoreOf: undo ? "x" : null,
        }),
      ),
  );
  const anyPolicy = fc.record({
    keep_last: fc.nat(10),
    keep_hourly: fc.nat(10),
    keep_daily: fc.nat(10),
    keep_weekly: fc.nat(10),
    keep_within_seconds: fc.nat(100_000),
    max_bytes: fc.nat(400),
  });
  const blobsOf = (each: CheckpointRef) => [
    { digest: `base${Number(each.id.slice(1)) >> 3}`, size: 40 },
    { digest: each.id, size: 3 },
  ];

  it("keeps the checkpoint that `latest` means when only safety checkpoints are newer, with any budget", () => {
    const refs = [
      ref("old", NOW - 90 * HOUR),
      ref("wanted", NOW - 80 * HOUR),
      ref("safety", NOW - 70 * HOUR, { reason: "pre-restore", beforeRestoreOf: "wanted" }),
      ref("again", NOW - 60 * HOUR, { reason: "pre-restore", beforeRestoreOf: "safety" }),
    ];
    const plan = retain(refs, { ...NONE, keep_last: 1, max_bytes: 1 }, NOW, ({ id }) => [
      { digest: id, size: 100 },
    ]);
    expect(ids(plan.keep)).toEqual(["wanted", "again"]);
    expect(plan.reasons.get("wanted")).toEqual(["latest"]);
  });

  it("partitions the index in order, and never removes protected checkpoints", () => {
    fc.assert(
      fc.property(anyRefs, anyPolicy, (refs, policy) => {
        const { keep, remove, reasons } = retain(refs, policy, NOW, blobsOf);
        const kept = new Set(keep);
        expect(refs.filter((each) => kept.has(each))).toEqual(keep);
        expect(refs.filter((each) => !kept.has(each))).toEqual(remove);
        expect(reasons.size).toBe(refs.length);
        for (const each of refs) if (each.pinned) expect(kept).toContain(each);
        for (const guarded of [
          refs.at(-1),
          refs.findLast((each) => each.provenAtMs !== null),
          refs.findLast((each) => each.beforeRestoreOf !== null),
        ])
          if (guarded !== undefined) expect(kept).toContain(guarded);
      }),
    );
  });

  it("is idempotent, and keeps more with a larger policy", () => {
    fc.assert(
      fc.property(anyRefs, anyPolicy, fc.nat(5), (refs, policy, more) => {
        const once = retain(refs, policy, NOW, blobsOf).keep;
        expect(retain(once, policy, NOW, blobsOf).remove).toEqual([]);
        const unlimited = { ...policy, max_bytes: 0 };
        const few = retain(refs, unlimited, NOW).keep;
        const many = new Set(retain(refs, { ...unlimited, keep_last: policy.keep_last + more }, NOW).keep);
        for (const each of few) expect(many).toContain(each);
      }),
    );
  });

  it("reduces a year of hourly checkpoints to about fifty by default", () => {
    const refs = Array.from({ length: 365 * 24 }, (_, i) => ref(`h${i}`, NOW - (365 * 24 - i) * HOUR));
    const { keep } = retain(refs, DEFAULT_RETENTION, NOW);
    expect(keep.length).toBeGreaterThan(35);
    expect(keep.length).toBeLessThan(60);
  });
});
