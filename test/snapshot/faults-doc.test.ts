// docs/faults.md must name only tests that exist.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

it("docs/faults.md names only existing test files, and every kill loop", () => {
  const text = readFileSync(join(ROOT, "docs/faults.md"), "utf8");
  const named = [...text.matchAll(/\b(?:test|src)\/[\w./-]+\w/g)].map(([path]) => path);
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  for (const loop of ["checkpoint", "restore", "import", "prune", "export-repair-pin"])
    expect(named).toContain(`test/crash/${loop}.test.ts`);
});

it("every fault of live points has a test of that name", () => {
  const text = readFileSync(join(ROOT, "docs/faults.md"), "utf8");
  const section = text.split(/^## /m).find((each) => each.startsWith("Live points: what could")) ?? "";
  const rows = [...section.matchAll(/^\| .+ \| `(.+)` \| (.+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(14);
  for (const [, file = "", name = ""] of rows)
    expect(readFileSync(join(ROOT, file), "utf8"), `${file}: ${name}`).toMatch(titleOf(name));
});

/** The formatter puts a title on a line of its own where it is long. */
function titleOf(name: string): RegExp {
  return new RegExp(`\\(\\s*"${RegExp.escape(name)}`);
}
