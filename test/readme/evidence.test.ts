// docs/evidence.md shows exactly the figures of docs/bench.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withFigures } from "../../bench/evidence.ts";

test("docs/evidence.md has the current figures of docs/bench", () => {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "evidence.md"), "utf8");
  expect(text).toMatch(/\d+ goals, \d+ missed\./);
  expect(withFigures(text)).toBe(text);
});
