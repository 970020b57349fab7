import fc from "fast-check";
import { expect, test } from "vitest";
import type { CapturedItem } from "../model/capture-item.ts";
import { fromColumns, toColumns } from "./captured-columns.ts";

const count = fc.nat(2 ** 31);
const optional = (fields: Record<string, fc.Arbitrary<unknown>>) => fc.record(fields, { requiredKeys: [] });

const item = fc
  .record({
    entry: fc
      .record({
        path: fc.string(),
        type: fc.constantFrom("file", "directory", "symlink", "fifo"),
        mode: fc.nat(0o7777),
        uid: count,
        gid: count,
        mtimeSec: fc.maxSafeInteger(),
        mtimeNs: fc.nat(999_999_999),
        size: fc.maxSafeNat(),
        sha256: fc.constantFrom("", "0f".repeat(32)),
      })
      .chain((entry) =>
        optional({
          target: fc.string(),
          group: fc.string(),
          xattrs: fc.array(fc.tuple(fc.string(), fc.string())),
          extents: fc.array(fc.tuple(count, count)),
        }).map((more) => ({ ...entry, ...more })),
      ),
    mark: fc.record({ ctimeMs: fc.double(), ino: fc.maxSafeNat(), nlink: count }),
  })
  .chain((plain) =>
    fc
      .tuple(
        optional({ torn: fc.string(), degraded: fc.string() }),
        fc.option(fc.record({ at: count, stored: count }), { nil: {} }),
      )
      .map(([flaws, bytes]) => ({ ...plain, ...flaws, ...bytes }) as CapturedItem),
  );

test("what goes into columns comes out of them", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(item, fc.boolean())), (asked) => {
      const items = asked.filter(([, captured]) => captured).map(([one]) => one);
      const paths = asked.map(([{ entry }, captured], i) => ({
        path: captured ? entry.path : `missed ${i}`,
        type: entry.type,
        size: 0,
      }));
      expect(fromColumns(structuredClone(toColumns(items, paths)), paths)).toEqual(items);
    }),
  );
});
