import fc from "fast-check";
import { expect, it } from "vitest";
import { createNameWriter, type NameTable, nameAt } from "./name-table.ts";

const narrow = fc.string({ unit: fc.constantFrom("a", "é", "\0", " ", "ÿ"), maxLength: 5 });
const wide = fc.string({ unit: fc.constantFrom("a", "漢", "🦀", "\udcff"), maxLength: 5 });
const names = fc.oneof(fc.array(narrow, { maxLength: 6 }), fc.array(wide, { maxLength: 6 }));

function tableOf(given: readonly string[]): NameTable {
  const writer = createNameWriter();
  for (const name of given) writer.add(name);
  return writer.finish();
}

const all = (table: NameTable) => Array.from(table.nameEnds, (_, row) => nameAt(table, row));

it("returns added and copied names in every encoding", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ given: names, copied: fc.boolean() }), { maxLength: 5 }), (parts) => {
      const writer = createNameWriter();
      for (const { given, copied } of parts) {
        // With one name before and one after the copied range.
        if (copied) writer.copy(tableOf(["x", ...given, "y"]), 1, given.length);
        else for (const name of given) writer.add(name);
      }
      expect(all(writer.finish())).toEqual(parts.flatMap(({ given }) => given));
    }),
  );
});

it("uses two bytes per character only if necessary", () => {
  expect([tableOf(["é", "a"]).spelling, tableOf(["é", "漢"]).spelling]).toEqual(["latin1", "utf16le"]);
});
