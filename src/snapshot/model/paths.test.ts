import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EntryType } from "./entry.ts";
import { someParent, whiteoutsFor } from "./paths.ts";

describe("whiteoutsFor", () => {
  const set = (given: Record<string, EntryType> = {}) => new Map(Object.entries(given));

  it("returns the topmost removed paths", () => {
    expect(whiteoutsFor(["a", "a/b", "a/b/c", "d/e"], set())).toEqual(["a", "d/e"]);
  });

  it("omits paths that are replaced, and everything below them", () => {
    expect(whiteoutsFor(["a", "a/b"], set({ a: "file" }))).toEqual([]);
    expect(whiteoutsFor(["a/b"], set({ a: "symlink" }))).toEqual([]);
  });

  it("keeps paths below a directory that is stored again as a directory", () => {
    expect(whiteoutsFor(["a", "a/b"], set({ a: "directory" }))).toEqual(["a/b"]);
  });

  it("does not confuse names with a common prefix", () => {
    expect(whiteoutsFor(["a", "ab", "a-b/c"], set())).toEqual(["a", "ab", "a-b/c"]);
  });

  it("whiteouts plus stored entries give the new tree when a layer is applied as OCI defines it", () => {
    const path = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
      .map((names) => names.join("/"));
    const tree = fc
      .dictionary(path, fc.constantFrom<EntryType>("file", "symlink"), { maxKeys: 8 })
      .map(complete);
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        const stored = new Map([...after].filter(([name, type]) => before.get(name) !== type));
        const removed = [...before.keys()].filter((name) => after.get(name) !== before.get(name)).sort();
        const merged = new Map(before);
        const drop = (top: string) => {
          for (const name of [...merged.keys()])
            if (name === top || name.startsWith(`${top}/`)) merged.delete(name);
        };
        for (const name of whiteoutsFor(removed, stored)) drop(name);
        for (const [name, type] of [...stored].sort()) {
          if (type !== "directory" || merged.get(name) !== "directory") drop(name);
          merged.set(name, type);
        }
        expect([...merged].sort()).toEqual([...after].sort());
      }),
    );
  });

  /** Adds parent directories, and drops paths below a non-directory. */
  function complete(given: Record<string, EntryType>): Map<string, EntryType> {
    const tree = new Map<string, EntryType>();
    for (const [name, type] of Object.entries(given).sort()) {
      if (someParent(name, (parent) => (tree.get(parent) ?? "directory") !== "directory")) continue;
      someParent(name, (parent) => {
        tree.set(parent, "directory");
        return false;
      });
      if (!tree.has(name)) tree.set(name, type);
    }
    return tree;
  }
});
