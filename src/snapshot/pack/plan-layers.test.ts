import { describe, expect, it } from "vitest";
import type { CaptureItem } from "../model/capture-item.ts";
import { createSecretMatcher } from "../path-patterns.ts";
import { planLayers } from "./plan-layers.ts";

const file = (path: string, more: Partial<CaptureItem> = {}): CaptureItem => ({
  path,
  type: "file",
  size: 1,
  ...more,
});
const isSecret = createSecretMatcher([".env", "private"]);
const plan = (changed: CaptureItem[], removed: string[] = [], directories: string[] = []) =>
  planLayers({ changed, removed, removedDirectories: new Set(directories) }, isSecret);
const pathsOf = ({ items }: { items: readonly CaptureItem[] }) => items.map(({ path }) => path);

describe("planLayers", () => {
  it("puts secrets into the local layer, with every name of the same file", () => {
    const { ordinary, local } = plan([
      file("a"),
      file("alias", { group: "g" }),
      file("d/.env", { group: "g", linkTo: "alias" }),
      file("e/.env"),
      file("other", { group: "h" }),
    ]);
    expect(pathsOf(ordinary)).toEqual(["a", "other"]);
    expect(pathsOf(local)).toEqual(["alias", "d/.env", "e/.env"]);
  });

  it("keeps directories and their removals in the ordinary layer, regardless of their names", () => {
    const added = plan([{ path: "private", type: "directory", size: 0 }, file("private/x")]);
    expect(pathsOf(added.ordinary)).toEqual(["private"]);
    expect(pathsOf(added.local)).toEqual(["private/x"]);
    const removed = plan([], ["private", "private/x"], ["private"]);
    expect(removed.ordinary).toMatchObject({ removed: ["private"], whiteouts: ["private"] });
    expect(removed.local).toMatchObject({ removed: ["private/x"], whiteouts: [] });
  });

  it("lists a replaced path neither as removed nor as a whiteout", () => {
    const { ordinary } = plan([file("a")], ["a", "a/b", "c"], ["a"]);
    expect(ordinary).toMatchObject({ removed: ["a/b", "c"], whiteouts: ["c"] });
  });
});
