import { describe, expect, it } from "vitest";
import { describeFlaws, flawLines } from "./flaws.ts";

const flaw = (path: string) => ({ path, kind: "skipped", reason: "a socket" }) as const;

describe("describeFlaws", () => {
  it("counts by kind, and returns nothing for no flaws", () => {
    expect(describeFlaws([])).toEqual([]);
    const torn = { path: "b", kind: "torn", reason: "it moved" } as const;
    expect(describeFlaws([flaw("a"), torn])).toEqual([
      "not captured exactly: 1 skipped, 1 torn",
      "  skipped   a: a socket",
      "  torn      b: it moved",
    ]);
  });

  it("lists the first twenty and counts the rest", () => {
    const lines = flawLines(Array.from({ length: 23 }, (_, i) => flaw(`f${i}`)));
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe("  … and 3 more; --json lists all");
  });

  it("shortens long paths and escapes control characters", () => {
    const [line] = flawLines([flaw(`worktree/\u001b[31m${"d/".repeat(2000)}end`)]);
    expect(line!.length).toBeLessThan(300);
    expect(line).toMatch(/^ {2}skipped {3}worktree\/.*end: a socket$/);
    expect(line).not.toContain("\u001b");
  });
});
