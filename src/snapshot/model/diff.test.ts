import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Draft, draftEntry } from "../../../test/snapshot/hand-made.ts";
import { isInstalled } from "../../../test/snapshot/tools.ts";
import { compareListings, diffContent, isOnlyDirectoryTime } from "./diff.ts";
import type { Entry, Listing } from "./entry.ts";
import { unifiedDiff } from "./text-diff.ts";

const listing = (...drafts: Draft[]): Listing =>
  new Map(drafts.map((draft) => [draft.path, draftEntry(draft) as Entry]));
const names = (a: Listing, b: Listing) =>
  compareListings(a, b).map(({ path, kind, aspects }) => [path, kind, aspects.join()]);

describe("the difference of two listings", () => {
  it("lists added, changed and removed paths, changed types and changed metadata", () => {
    const before = listing(
      { path: ".", type: "directory" },
      { path: "same", content: "x" },
      { path: "gone", content: "x" },
      { path: "edited", content: "x" },
      { path: "touched", content: "x" },
      { path: "turned", content: "x" },
      { path: "link", type: "symlink", target: "a" },
      {
        path: "tagged",
        content: "x",
        xattrs: [
          ["user.b", "Mg=="],
          ["user.a", "MQ=="],
        ],
      },
    );
    const after = listing(
      { path: ".", type: "directory", mtimeSec: 5 },
      { path: "same", content: "x" },
      { path: "edited", content: "y" },
      { path: "touched", content: "x", mode: 0o600, mtimeSec: 9 },
      { path: "turned", type: "directory" },
      { path: "link", type: "symlink", target: "b" },
      { path: "new", content: "x" },
      {
        path: "tagged",
        content: "x",
        xattrs: [
          ["user.a", "MQ=="],
          ["user.b", "Mg=="],
        ],
      },
    );
    expect(names(before, after)).toEqual([
      [".", "metadata", "time"],
      ["edited", "changed", ""],
      ["gone", "removed", ""],
      ["link", "changed", ""],
      ["new", "added", ""],
      ["touched", "metadata", "mode,time"],
      ["turned", "type", "mode"],
    ]);
    expect(
      compareListings(before, after)
        .filter(isOnlyDirectoryTime)
        .map(({ path }) => path),
    ).toEqual(["."]);
  });

  it("detects added and removed hard links, regardless of group names", () => {
    const linked = (group: string) =>
      listing({ path: "a", content: "x", group }, { path: "b", content: "x", group });
    const separate = listing({ path: "a", content: "x" }, { path: "b", content: "x" });
    expect(names(linked("g1"), linked("g2"))).toEqual([]);
    expect(names(linked("g1"), separate)).toEqual([
      ["a", "metadata", "links"],
      ["b", "metadata", "links"],
    ]);
  });

  it("shows text, or explains why there is none", () => {
    const read = (text: string) => () => Buffer.from(text);
    const [change] = compareListings(
      listing({ path: "f", content: "a\nb\n" }),
      listing({ path: "f", content: "a\nc\n" }),
    );
    expect(diffContent(change!, read("a\nb\n"), read("a\nc\n")).text).toBe("@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    expect(diffContent(change!, read("a\0"), read("b"))).toEqual({ text: "", note: "a binary file" });
    const [large] = compareListings(listing(), listing({ path: "f", content: "x".repeat(2 << 20) }));
    expect(diffContent(large!, read(""), read("")).note).toMatch(/larger/);
    const [link] = compareListings(
      listing({ path: "l", type: "symlink", target: "a" }),
      listing({ path: "l", content: "hi\n" }),
    );
    expect(diffContent(link!, read(""), read("hi\n")).text).toBe("@@ -1 +1 @@\n-a\n+hi\n");
  });
});

describe("a unified diff", () => {
  const line = fc.constantFrom("a\n", "b\n", "c\n", "d\n");
  const text = fc
    .tuple(fc.array(line, { maxLength: 40 }), fc.constantFrom("", "e", "\n"))
    .map(([lines, end]) => lines.join("") + end);

  /** Applies hunks by their line numbers, checking every context and removed line. */
  const apply = (lines: readonly string[], diff: string): string[] => {
    const out: string[] = [];
    let at = 0;
    for (const hunk of diff.split(/^(?=@@ )/m).filter((part) => part !== "")) {
      const [, start, count] = /^@@ -(\d+)(?:,(\d+))? /.exec(hunk)!;
      const first = count === "0" ? Number(start) : Number(start) - 1;
      while (at < first) out.push(lines[at++]!);
      for (const line of hunk.split(/(?<=\n)/).slice(1)) {
        if (line[0] !== "+") expect(lines[at++]).toBe(line.slice(1));
        if (line[0] !== "-") out.push(line.slice(1));
      }
    }
    return [...out, ...lines.slice(at)];
  };

  it("transforms one text into the other", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 60 }), fc.array(line, { maxLength: 60 }), (a, b) => {
        expect(apply(a, unifiedDiff(a.join(""), b.join("")))).toEqual(b);
      }),
    );
  });

  it("is correct when everything differs", () => {
    const a = Array.from({ length: 5000 }, (_, i) => `a${i}\n`).join("");
    const b = Array.from({ length: 5000 }, (_, i) => `b${i}\n`).join("");
    expect(unifiedDiff(a, b)).toMatch(/^@@ -1,5000 \+1,5000 @@\n/);
  });

  const patch = isInstalled("patch", "diffs applied by patch");
  it.skipIf(!patch)("is accepted by patch(1)", () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-diff-"));
    try {
      const file = join(directory, "f");
      fc.assert(
        fc.property(text, text, (a, b) => {
          writeFileSync(file, a);
          const diff = unifiedDiff(a, b);
          if (diff === "") expect(a).toBe(b);
          else execFileSync("patch", ["-s", "-F0", file], { input: `--- f\n+++ f\n${diff}` });
          expect(readFileSync(file, { encoding: "utf8", flag: "a+" })).toBe(b);
        }),
        { numRuns: 60 },
      );
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
