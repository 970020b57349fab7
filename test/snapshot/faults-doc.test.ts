// The table of faults is only worth something while what it names is there.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

it("every test file and folder that docs/faults.md names exists, and every one of its loops is named", () => {
  const text = readFileSync(join(ROOT, "docs/faults.md"), "utf8");
  const named = [...text.matchAll(/\b(?:test|src)\/[\w./-]+\w/g)].map(([path]) => path);
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  for (const loop of ["checkpoint", "restore", "import", "prune", "rest"])
    expect(named).toContain(`test/crash/${loop}.test.ts`);
});
