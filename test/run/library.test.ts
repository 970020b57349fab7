// The library: every export of every entry point has a doc comment, and every entry point has an example that runs.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  exports: Record<string, { types: string } | string>;
};

/** Source file by the name of its entry point. */
const ENTRIES = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "string"
    ? []
    : [[name, target.types.replace("./dist/types", "src").replace(".d.ts", ".ts")] as const],
);

const DECLARATION =
  /(\*\/\s*)?(?:^\/\/ biome-ignore.*\n)?^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|interface|type|class) (\w+)/gm;
const REEXPORT = /^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?;/gm;
const STAR = /^export (?:type )?\* from "([^"]+)";/gm;

interface Exported {
  readonly name: string;
  readonly file: string;
  readonly documented: boolean;
}

function declarationsOf(file: string): Map<string, boolean> {
  const text = readFileSync(file, "utf8");
  return new Map([...text.matchAll(DECLARATION)].map(([, comment, name]) => [name!, comment !== undefined]));
}

/** All exports of a file, with where each is declared. */
function exportsOf(file: string): Exported[] {
  const text = readFileSync(file, "utf8");
  const own = [...declarationsOf(file)].map(([name, documented]) => ({ name, file, documented }));
  const imported = new Map(
    [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "(\.[^"]+)";/gm)].flatMap(([, names, from]) =>
      namesIn(names!).map((name) => [name, resolve(dirname(file), from!)] as const),
    ),
  );
  const again = [...text.matchAll(REEXPORT)].flatMap(([, names, from]) =>
    namesIn(names!).map((name) => {
      const source = from === undefined ? imported.get(name)! : resolve(dirname(file), from);
      return find(source, name);
    }),
  );
  const stars = [...text.matchAll(STAR)].flatMap(([, from]) => exportsOf(resolve(dirname(file), from!)));
  return [...own, ...again, ...stars];
}

function namesIn(list: string): string[] {
  return list
    .split(",")
    .map((name) => name.trim().replace(/^type /, ""))
    .filter((name) => name !== "");
}

function find(file: string, name: string): Exported {
  const found = exportsOf(file).find((each) => each.name === name);
  if (found === undefined) throw new Error(`${file} does not export ${name}`);
  return found;
}

describe("exports", () => {
  test.each(ENTRIES)("every export of %s has a doc comment", (_, source) => {
    const all = exportsOf(join(ROOT, source));
    expect(all.length).toBeGreaterThan(0);
    const missing = all.filter(({ documented }) => !documented);
    expect(missing.map(({ name, file }) => `${name} in ${relative(ROOT, file)}`)).toEqual([]);
  });
});

describe("examples", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "lazarus-library-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test.each(ENTRIES.filter(([name]) => name !== "./health"))("the example of %s runs", (name) => {
    const example = join(ROOT, "examples", "library", `${name === "." ? "cells" : name.slice(2)}.ts`);
    expect(existsSync(example)).toBe(true);
    const home = mkdtempSync(join(directory, "home-"));
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", example, home],
      { encoding: "utf8" },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("ok");
  });
});
