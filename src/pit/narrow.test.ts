import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyCell, narrow } from "./narrow.ts";
import { REVIVE_MODES } from "./record/record.ts";
import { grantedValues, type PitValues } from "./settings.ts";

const DEFAULTS = grantedValues({}, undefined);
const FILE = "/m/config/cell.json";

const apply = (cell: object, granted: Partial<PitValues> = {}) =>
  applyCell({ ...DEFAULTS, ...granted }, "m", FILE, { ok: true, value: { ...cell } });

describe("narrow", () => {
  test.each<[Partial<PitValues>, Partial<PitValues>, Partial<PitValues>]>([
    [{ revive: "yes" }, { revive: "substitute" }, { revive: "substitute" }],
    [{ revive: "yes" }, { revive: "no" }, { revive: "no" }],
    [{ max_revivals_per_hour: 5 }, { max_revivals_per_hour: 1 }, { max_revivals_per_hour: 1 }],
    [{ stall_seconds: null }, { stall_seconds: 60 }, { stall_seconds: 60 }],
    [{ stall_seconds: 60 }, { stall_seconds: 30 }, { stall_seconds: 30 }],
    [{ grace_seconds: 10 }, { grace_seconds: 0 }, { grace_seconds: 0 }],
    [{ backoff_seconds: [0, 10] }, { backoff_seconds: [5, 10, 20] }, { backoff_seconds: [5, 10, 20] }],
    [{ healthy_seconds: 600 }, { healthy_seconds: 900 }, { healthy_seconds: 900 }],
    [{ permanent_exit_codes: [78] }, { permanent_exit_codes: [3] }, { permanent_exit_codes: [78, 3] }],
  ])("accepts less: %j asked for %j", (granted, requested, expected) => {
    const { values, ignored } = narrow({ ...DEFAULTS, ...granted }, requested);
    expect(values).toEqual({ ...DEFAULTS, ...expected });
    expect(ignored).toEqual([]);
  });

  test.each<[Partial<PitValues>, Partial<PitValues>]>([
    [{ revive: "ask" }, { revive: "yes" }],
    [{ revive: "no" }, { revive: "ask" }],
    [{ revive: "ask" }, { revive: "substitute" }],
    [{ max_revivals_per_hour: 5 }, { max_revivals_per_hour: 1_000_000 }],
    [{ max_age_seconds: 60 }, { max_age_seconds: 61 }],
    [{ stall_seconds: 60 }, { stall_seconds: null }],
    [{ grace_seconds: 10 }, { grace_seconds: 86_400 }],
    [{ backoff_seconds: [0, 10] }, { backoff_seconds: [0] }],
    [{ healthy_seconds: 600 }, { healthy_seconds: 0 }],
    [{ quota_patterns: [] }, { quota_patterns: ["(a+)+$"] }],
    [{ checkpoint_every_seconds: 60 }, { checkpoint_every_seconds: null }],
    [{ checkpoint_at_shutdown: true }, { checkpoint_at_shutdown: false }],
  ])("ignores more: %j asked for %j", (granted, requested) => {
    const all = { ...DEFAULTS, ...granted };
    expect(narrow(all, requested)).toEqual({ values: all, ignored: Object.keys(requested) });
  });

  test("never grants more than requested or granted, and applying it twice changes nothing", () => {
    const number = fc.nat(100);
    const values = fc.record(
      {
        revive: fc.constantFrom(...REVIVE_MODES),
        max_revivals_per_hour: number,
        stall_seconds: fc.option(number),
        backoff_seconds: fc.array(number, { maxLength: 4 }),
        permanent_exit_codes: fc.array(number, { maxLength: 4 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(values, values, (granted, requested) => {
        const before = { ...DEFAULTS, ...granted };
        const { values: after } = narrow(before, requested);
        const rank = (mode: string) => ["no", "ask", "substitute", "yes"].indexOf(mode);
        expect(rank(after.revive)).toBeLessThanOrEqual(rank(before.revive));
        expect(after.max_revivals_per_hour).toBeLessThanOrEqual(before.max_revivals_per_hour);
        expect(after.stall_seconds ?? Infinity).toBeLessThanOrEqual(before.stall_seconds ?? Infinity);
        expect(after.permanent_exit_codes).toEqual(expect.arrayContaining([...before.permanent_exit_codes]));
        expect(narrow(after, requested).values).toEqual(after);
      }),
    );
  });
});

describe("a cell's config", () => {
  test("that asks for more is ignored, with file, key and the command that grants it", () => {
    const { values, warnings } = apply({
      pit: { revive: "yes", max_revivals_per_hour: 1_000_000, quota_patterns: ["("], grace_seconds: 1 },
    });
    expect(values).toEqual({ ...DEFAULTS, grace_seconds: 1 });
    const ignored = (key: string) =>
      `${FILE}: pit.${key} is ignored: a cell can only narrow what you granted; to grant it: lazarus set m ${key}=VALUE`;
    expect(Object.values(warnings)).toEqual(
      ["revive", "max_revivals_per_hour", "quota_patterns"].map(ignored),
    );
  });
  test("cannot name a resume command", () => {
    expect(apply({ resume_command: ["sh"] })).toEqual({
      values: DEFAULTS,
      warnings: { resume_command: expect.stringContaining("lazarus set m resume_command=VALUE") },
    });
  });
  test("that repeats what is granted, or is absent, causes no warning", () => {
    expect(apply({ pit: { ...DEFAULTS } })).toEqual({ values: DEFAULTS, warnings: {} });
    const absent = { ok: false, why: "absent", reason: "" } as const;
    expect(applyCell(DEFAULTS, "m", FILE, absent)).toEqual({ values: DEFAULTS, warnings: {} });
  });
  test.each([
    ["yes", "ask"],
    ["ask", "ask"],
    ["no", "no"],
  ] as const)("that is broken narrows revive: %s becomes %s", (revive, expected) => {
    for (const pit of [7, { revive: "always" }]) {
      const { values, warnings } = apply({ pit }, { revive });
      expect(values).toEqual({ ...DEFAULTS, revive: expected });
      expect(Object.values(warnings)).toEqual([expect.stringContaining(`revive is "${expected}"`)]);
    }
  });
  test("with an unknown key is reported", () => {
    expect(Object.values(apply({ pit: { stal_seconds: 1 } }).warnings)).toEqual([
      `${FILE}: pit has keys that are not settings of a cell; they are not used`,
    ]);
  });
});
