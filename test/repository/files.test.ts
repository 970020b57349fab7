import { describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/platform/errors.ts";
import { listSources, ROOT, readSource } from "./files.ts";
import {
  checkFolderSizes,
  checkHeader,
  checkLength,
  checkMachinePaths,
  checkName,
  checkSkips,
} from "./rules.ts";

const sources = listSources("src", /(?<!\.test)\.ts$/);
const scripts = ["src", "bench", "bin", "scripts", "test", "examples"].flatMap((directory) =>
  listSources(directory, /\.(?:ts|js|mjs)$/),
);
const documents = listSources("docs", /\.md$/);

describe("every file", () => {
  it("of src/ has a header comment", () => {
    expect(sources.flatMap(checkHeader)).toEqual([]);
  });

  it("of src/ is short enough to read", () => {
    expect(sources.flatMap(checkLength)).toEqual([]);
  });

  it("of src/ is in a folder of at most 24", () => {
    expect(checkFolderSizes(sources.map(({ path }) => path))).toEqual([]);
  });

  it("is named in kebab-case after a noun or verb", () => {
    expect(scripts.flatMap(checkName)).toEqual([]);
  });

  it("together uses every error code", () => {
    const errors = "src/platform/errors.ts";
    const text = sources
      .map(({ path, text: each }) => (path === errors ? codeTables(each) : each))
      .join("\n");
    expect(Object.keys(ERROR_CODES).filter((code) => !text.includes(`"${code}"`))).toEqual([]);
  });

  it("of tests gives a reason for each skipped test", () => {
    expect(scripts.filter(({ path }) => path.endsWith(".test.ts")).flatMap(checkSkips)).toEqual([]);
  });

  it("package-lock.json names no registry, so that npm uses the configured one", () => {
    expect(readSource("package-lock.json").text).not.toMatch(/"resolved"\s*:/);
  });

  it("of docs/adr has its own number", () => {
    const numbers = documents.flatMap(({ path }) => /^docs\/adr\/(\d+)-/.exec(path)?.[1] ?? []);
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([]);
  });

  it("contains no path of a particular machine", () => {
    expect([...scripts, ...documents].flatMap((file) => checkMachinePaths(file, ROOT))).toEqual([]);
  });
});

/** Without the table that declares the codes. */
function codeTables(text: string): string {
  return text.slice(text.indexOf("} as const satisfies Record<string, ErrorKind>"));
}

describe("a rule rejects", () => {
  const file = (text: string, path = "src/cell/x.ts") => ({ path, text });

  it("a file that begins with code", () => {
    expect(checkHeader(file("export const x = 1;\n"))).toHaveLength(1);
    expect(checkHeader(file("// Owns x.\nexport const x = 1;\n"))).toEqual([]);
  });

  it("more than 350 lines", () => {
    expect(checkLength(file("x;\n".repeat(350)))).toEqual([]);
    expect(checkLength(file("x;\n".repeat(351)))).toHaveLength(1);
  });

  it("a folder of 25 files", () => {
    const files = Array.from({ length: 25 }, (_, index) => `src/cell/x${index}.ts`);
    expect(checkFolderSizes(files)).toHaveLength(1);
    expect(checkFolderSizes(files.slice(1))).toEqual([]);
  });

  it.each([
    "missionId.ts",
    "Mission.ts",
    "mission_id.ts",
    "utils.ts",
    "test-helpers.ts",
    "cell-manager.ts",
    "common.ts",
  ])("the name %s", (name) => {
    expect(checkName(file("", `src/cell/${name}`))).toHaveLength(1);
  });

  it.each(["mission-id.ts", "mission-id.test.ts", "cell.bench.ts", "on-newer-node.js"])(
    "but not %s",
    (name) => {
      expect(checkName(file("", `src/cell/${name}`))).toEqual([]);
    },
  );

  it("tests that are skipped without a reason", () => {
    // Assembled here, so that a search for skipped tests does not find these samples.
    const [only, skip, todo] = ["on" + "ly", "sk" + "ip", "to" + "do"];
    expect(checkSkips(file(`it.${only}("x", f);`))).toHaveLength(1);
    expect(checkSkips(file(`describe.${skip}("x", f);\n\n\ntest.${todo}("y");`))).toHaveLength(2);
    expect(checkSkips(file(`context.${skip}();`))).toHaveLength(1);
    expect(checkSkips(file(`// Needs a network.\nit.${skip}("x", f);\ncontext.${skip}("no root");`))).toEqual(
      [],
    );
  });

  it("a path of a particular machine", () => {
    const found = (text: string) => checkMachinePaths(file(text), "/srv/checkout").length;
    const [home, users, root] = ["home", "Users", "root"];
    expect(found(`see /${home}/bob/src`)).toBe(1);
    expect(found(`see /${users}/bob/src`)).toBe(1);
    expect(found(`see /${root}/.cache/x`)).toBe(1);
    expect(found("see /srv/checkout/src")).toBe(1);
    expect(found("see ~/src and $HOME/src and <world>/home/missions/m1")).toBe(0);
  });
});
