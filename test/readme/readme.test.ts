import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUILT } from "../cli/hermetic.ts";
import { formatReadme, parseReadme, withoutVariation } from "./transcript.ts";
import { walkReadme } from "./walk.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const blocks = parseReadme(README);

describe("README", () => {
  it("is parsed and formatted without a change", () => {
    expect(formatReadme(blocks)).toBe(README);
    expect(blocks.filter(({ kind }) => kind === "console").length).toBeGreaterThan(5);
  });

  it("shows what its commands print, and its TypeScript compiles", { timeout: 600_000 }, async () => {
    let compiled = "";
    const walked = await walkReadme(blocks, BUILT, (home) => {
      compiled = typeCheck(home);
    });
    expect(withoutVariation(formatReadme(walked))).toBe(withoutVariation(README));
    expect(compiled).toBe("");
  });
});

/** The output of tsc for the reader's files, with the options of `tsc --init`. */
function typeCheck(home: string): string {
  const files = globSync("**/*.ts", { cwd: home, exclude: (name) => name === "node_modules" });
  expect(files).not.toEqual([]);
  const options =
    "--strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes --verbatimModuleSyntax --skipLibCheck " +
    "--module nodenext --target esnext --types node --noEmit";
  const typeRoots = join(ROOT, "node_modules", "@types");
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(
    process.execPath,
    [tsc, ...options.split(" "), "--typeRoots", typeRoots, ...files],
    { cwd: home, encoding: "utf8" },
  );
  return stdout;
}
