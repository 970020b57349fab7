// A cache updated from its predecessor must equal one built from scratch, whatever changed in between.
import { hash } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { CapturedItem } from "../model/capture-item.ts";
import { joinPath } from "../model/path-bytes.ts";
import { runTask } from "../pack/task.ts";
import { createMatcher } from "../path-patterns.ts";
import { goneFromRows } from "./classify.ts";
import type { Survey } from "./found.ts";
import { nameAt } from "./name-table.ts";
import { buildCache, freshItems } from "./next-cache.ts";
import { cachedEntry, decodeStatCache, encodeStatCache, type StatCache } from "./stat-cache.ts";
import { allFound } from "./unchanged-rows.ts";
import { createWalker } from "./walk.ts";

/** Two changes within one tick of the kernel's clock have the same stat; such files are treated as racy. */
const TICK_MS = 11;

type Edit =
  | { readonly do: "write" | "remove" | "directory" | "link" | "touch"; readonly at: string }
  | { readonly do: "second" | "move"; readonly at: string; readonly to: string };

const path = fc
  .array(fc.constantFrom("a", "b", "c-wal", "ü"), { minLength: 1, maxLength: 3 })
  .map((names) => names.join("/"));
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("write" as const), at: path }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("remove" as const, "directory" as const, "link" as const, "touch" as const),
      at: path,
    }),
  },
  fc.record({ do: fc.constantFrom("second" as const, "move" as const), at: path, to: path }),
);
const round = fc.record({
  edits: fc.array(edit, { maxLength: 6 }),
  /** Captured files and directories that cannot be read this time. */
  missed: fc.array(path, { maxLength: 1 }),
  excluded: fc.constantFrom<string[]>([], [], [], ["ü"]),
});

let length = 1;
function applyEdit(root: string, given: Edit): void {
  const at = join(root, given.at);
  try {
    if (given.do === "write") {
      fs.mkdirSync(join(at, ".."), { recursive: true });
      fs.writeFileSync(at, "x".repeat(length++));
    } else if (given.do === "remove") fs.rmSync(at, { recursive: true });
    else if (given.do === "directory") fs.mkdirSync(at, { recursive: true });
    else if (given.do === "link") fs.symlinkSync(`to-${length++}`, at);
    else if (given.do === "touch") fs.lutimesSync(at, length++, length++);
    else if (given.do === "second") fs.linkSync(at, join(root, given.to));
    else if (given.do === "move") fs.renameSync(at, join(root, given.to));
  } catch {
    // Not every edit applies to every tree.
  }
}

/** One checkpoint as far as the cache is concerned: changed paths are read, except missed ones. */
function next(root: string, cache: StatCache | undefined, excluded: string[], missed: readonly string[]) {
  const rules = hash("sha256", JSON.stringify(excluded));
  const isExcluded = createMatcher(excluded);
  const walk = createWalker({ root, cache, isExcluded, rules }).walk();
  const all = allFound(walk, cache).toArray();
  const items = walk.found
    .filter(({ unchanged, path }) => !unchanged && !missed.includes(path))
    .map(({ path, type, size }) => ({ path, type, size }));
  const { captured } = runTask({ kind: "hash", codec: "gzip", root, items });
  const byPath = new Map<string, CapturedItem>(captured.map((item) => [item.entry.path, item]));
  const survey: Survey = {
    cache,
    walk,
    rules,
    scanStartMs: Number.POSITIVE_INFINITY,
    namesSinceMs: Number.POSITIVE_INFINITY,
    mapped: new Set(),
    changed: [],
    refreshed: new Map(),
    removed: cache === undefined ? [] : goneFromRows(cache, walk.gone).map(({ path }) => path),
    removedDirectories: new Set(),
    flaws: [],
    sources: new Map(),
  };
  return {
    all,
    next: shared(buildCache(survey, freshItems(survey, byPath), "m")),
    unread: all.filter((seen) => isMissed(seen)),
  };

  function isMissed({ path, unchanged }: { path: string; unchanged: boolean }): boolean {
    return !unchanged && missed.includes(path);
  }
}

function shared(cache: StatCache): StatCache {
  const bytes = encodeStatCache(cache);
  const memory = new SharedArrayBuffer(bytes.length);
  new Uint8Array(memory).set(bytes);
  return decodeStatCache(memory)!;
}

/** Every path that is reachable from the root of the cache, with its entry. */
function listing(cache: StatCache): Map<string, unknown> {
  const paths = new Map<string, unknown>();
  const visit = (row: number, path: string) => {
    expect(paths.has(path), `${path} appears once`).toBe(false);
    paths.set(path, { ...cachedEntry(cache, row, path), special: cache.special[row] });
    const first = cache.firstChild[row]!;
    for (let child = first; child < first + cache.childCount[row]!; child += 1)
      visit(child, joinPath(path, nameAt(cache, child)));
  };
  visit(0, ".");
  return paths;
}

it("an updated cache equals one built from scratch", () => {
  fc.assert(
    fc.property(fc.array(round, { minLength: 2, maxLength: 5 }), (rounds) => {
      const root = fs.mkdtempSync(join(tmpdir(), "lazarus-next-cache-"));
      try {
        let cache: StatCache | undefined;
        for (const { edits, missed, excluded } of rounds) {
          for (const each of edits) applyEdit(root, each);
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TICK_MS);
          const seen = next(root, cache, excluded, missed);
          const fresh = next(root, undefined, excluded, []);
          expect(seen.all.map(({ path }) => path).sort()).toEqual(fresh.all.map(({ path }) => path).sort());
          const isLost = (path: string) =>
            seen.unread.some((lost) => lost.path === path || path.startsWith(`${lost.path}/`));
          const wanted = [...listing(fresh.next)].filter(([path]) => !isLost(path));
          const given = listing(seen.next);
          expect(Object.fromEntries(given)).toEqual(Object.fromEntries(wanted));
          expect(seen.next.count, "every row is reachable").toBe(given.size);
          cache = seen.next;
        }
      } finally {
        fs.rmSync(root, { recursive: true, force: true });
      }
    }),
    { numRuns: 60 },
  );
});
