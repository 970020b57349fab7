import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeToc, encodeToc } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";

const name = fc.oneof(
  fc.constantFrom("a", 'q","f', "back\\", '\\","', "\udcff", "new\nline", "group", '"group":"x"}'),
  fc
    .string({ minLength: 1, maxLength: 6 })
    .filter((text) => !/[/\0]/.test(text) && text !== "." && text !== ".."),
);

it("decodes only the rows of selected paths and of hard links", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(name, { maxLength: 12 }),
      fc.nat(),
      fc.array(fc.boolean()),
      (names, pick, grouped) => {
        const entries = names.map((path, i): TocEntry => {
          const base = {
            path,
            type: "file",
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtimeSec: 1,
            mtimeNs: 2,
            size: 0,
          } as const;
          return { ...base, sha256: "aa", ...(grouped[i] ? { group: "g" } : {}) };
        });
        const removed = names.map((path) => `gone/${path}`);
        const payload = encodeToc({
          members: [{ stored: 1, raw: 2, entries: names.length }],
          entries,
          removed,
        });
        const only = new Set(
          names.filter((_, i) => (pick >> i) % 2 === 1).flatMap((path) => [path, `gone/${path}`]),
        );
        const some = decodeToc(payload, 1 << 20, only);
        const all = decodeToc(payload, 1 << 20);
        expect(some.members).toEqual(all.members);
        expect(some.entries).toEqual(
          all.entries.filter((entry) => only.has(entry.path) || entry.group !== undefined),
        );
        expect(some.removed).toEqual(all.removed.filter((path) => only.has(path)));
      },
    ),
  );
});
