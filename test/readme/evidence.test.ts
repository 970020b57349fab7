// The page of evidence shows the figures of docs/bench and no others.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withFigures } from "../../bench/evidence.ts";

test("its figures are those of the benches", () => {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "evidence.md"), "utf8");
  expect(text).toMatch(/\d+ goals, \d+ missed\./);
  expect(withFigures(text)).toBe(text);
});
