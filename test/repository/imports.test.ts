import { describe, expect, it } from "vitest";
import { listSources } from "./files.ts";
import {
  findCycles,
  folderCycles,
  kernelImports,
  LAYERS,
  moduleOf,
  readImports,
  wrongDirections,
} from "./imports.ts";

const sources = listSources("src", /(?<!\.test)\.ts$/);
const imports = sources.flatMap(({ path, text }) => readImports(path, text));

describe("the imports of src/", () => {
  it("are found", () => {
    expect(imports.length).toBeGreaterThan(1_000);
    const known = new Set(sources.map(({ path }) => path));
    expect(imports.filter(({ to }) => to.startsWith("src/") && !known.has(to))).toEqual([]);
  });

  it("go from higher modules to lower ones", () => {
    expect(wrongDirections(imports)).toEqual([]);
  });

  it("make no cycle between the sub-folders of a module", () => {
    expect(folderCycles(imports)).toEqual([]);
  });

  it("keep optional parts out of the kernel of a run", () => {
    expect(kernelImports(imports)).toEqual([]);
  });

  it("belong to modules that have a layer", () => {
    const modules = new Set(sources.map(({ path }) => moduleOf(path)).filter((name) => name !== undefined));
    expect([...modules].sort()).toEqual([...LAYERS.flat(), "testing"].sort());
  });
});

describe("a rule rejects", () => {
  it.each([
    ["src/platform/x.ts", "../cell/config.ts"],
    ["src/cell/x.ts", "../snapshot/capture/capture.ts"],
    ["src/flow/document/x.ts", "../../run/index.ts"],
    ["src/registry/x.ts", "../snapshot/model/entry.ts"],
    ["src/alerts/x.ts", "../service/unit.ts"],
    ["src/pit/x.ts", "../http/server.ts"],
    ["src/http/x.ts", "../integrations/gitea/settings.ts"],
    ["src/cell/x.ts", "../testing/index.ts"],
    ["src/testing/x.ts", "../cell/config.ts"],
    ["src/cell/x.ts", "../cli/hermetic.ts"],
  ])("%s importing %s, in every form of import", (path, specifier) => {
    for (const statement of [
      `import { x } from "${specifier}";`,
      `import type { X } from "${specifier}";`,
      `import {\n  x,\n  y,\n} from "${specifier}";`,
      `export * from "${specifier}";`,
      `export type { X } from "${specifier}";`,
      `const x = await import("${specifier}");`,
      `import "${specifier}";`,
    ]) {
      expect(wrongDirections(readImports(path, statement)), statement).toHaveLength(1);
    }
  });

  it("two sub-folders that import each other", () => {
    const there = { from: "src/flow/once/a.ts", to: "src/flow/locking/b.ts" };
    const back = { from: "src/flow/locking/c.ts", to: "src/flow/once/d.ts" };
    expect(folderCycles([there])).toEqual([]);
    expect(folderCycles([there, back])).toEqual(["src/flow/locking → src/flow/once → src/flow/locking"]);
  });

  it("a cycle through a third folder", () => {
    const graph = new Map([
      ["a", new Set(["b"])],
      ["b", new Set(["c"])],
      ["c", new Set(["a"])],
    ]);
    expect(findCycles(graph)).toEqual(["a → b → c → a"]);
  });

  it("a kernel that imports an optional part", () => {
    const found = readImports("src/run/kernel/x.ts", 'import { y } from "../critic/index.ts";');
    expect(kernelImports(found)).toHaveLength(1);
  });
});

it("a comment is not an import", () => {
  expect(
    readImports("src/cell/x.ts", '// import { x } from "../cli/main.ts";\n * import("../cli/main.ts")'),
  ).toEqual([]);
});
