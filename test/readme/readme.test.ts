import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUILT } from "../cli/hermetic.ts";
import { formatReadme, parseReadme, withoutChance } from "./transcript.ts";
import { walkReadme } from "./walk.ts";

const README = readFileSync(join(import.meta.dirname, "..", "..", "README.md"), "utf8");
const blocks = parseReadme(README);

describe("README", () => {
  it("is read and written without a change", () => {
    expect(formatReadme(blocks)).toBe(README);
    expect(blocks.filter(({ kind }) => kind === "console").length).toBeGreaterThan(5);
  });

  it("shows what its commands print", { timeout: 600_000 }, async () => {
    const walked = await walkReadme(blocks, BUILT);
    expect(withoutChance(formatReadme(walked))).toBe(withoutChance(README));
  });
});
