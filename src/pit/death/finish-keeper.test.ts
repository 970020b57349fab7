import { expect, test } from "vitest";
import { keeperStep } from "./finish-keeper.ts";

test("a keeper whose agent has exited is given time, continued when stopped, and killed after its deadline", () => {
  const after = (elapsedMs: number, isStopped: boolean) =>
    keeperStep({ elapsedMs, isStopped, leftoverGraceMs: 5000 });
  expect(after(0, false)).toBe("wait");
  expect(after(44_000, false)).toBe("wait");
  expect(after(0, true)).toBe("continue");
  expect(after(44_000, true)).toBe("continue");
  expect(after(46_000, false)).toBe("kill");
  expect(after(46_000, true)).toBe("kill");
});
