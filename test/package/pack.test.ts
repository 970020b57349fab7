// The package that users install: `npm pack`, unpacked into an empty project next to its dependencies. No network.
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GUIDE } from "./guide.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const exported = Object.keys(manifest.exports).map((path) => join("lazarus", path));

let project: string;
let installed: string;
let files: string[];
beforeAll(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-pack-")));
  installed = join(project, "node_modules", "lazarus");
  mkdirSync(installed, { recursive: true });
  // The global set-up has built dist, as prepack would.
  const [{ filename }] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", project], {
      cwd: ROOT,
      encoding: "utf8",
    }),
  );
  execFileSync("tar", ["-xzf", join(project, filename), "-C", installed, "--strip-components=1"]);
  files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1));
  const forExamples = ["@langchain/langgraph", "@types/node"];
  for (const name of [
    ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
    ...forExamples,
  ]) {
    const place = join(project, "node_modules", name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), place);
  }
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

const node = (...args: string[]) =>
  execFileSync(process.execPath, args, { cwd: project, encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });

/** Names of the packages that a file imports. */
function importedPackages(path: string): string[] {
  const text = readFileSync(join(installed, path), "utf8");
  const imports = /(?:\bfrom|\bimport\(?|\brequire\()\s*["']((?:@[\w.-]+\/)?\w[\w.-]*)(?:\/[\w./-]+)?["']/g;
  return [...text.matchAll(imports)].map(([, name]) => name!);
}

describe("npm pack", () => {
  it("contains the program, the types and the documents, and nothing else", () => {
    const targets = Object.values<string | Record<string, string>>(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : Object.values(target),
    );
    expect(files).toEqual(
      expect.arrayContaining([
        ...targets.map((target) => join(target)),
        ...["bin/lazarus.js", "bin/on-newer-node.js", "dist/cli/main.js"],
        ...["README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md", "docs/format.md"],
      ]),
    );
    expect(
      files.filter((path) => !/^(?:bin|dist|docs)\/|^[A-Z]+(?:\.md)?$|^package\.json$/.test(path)),
    ).toEqual([]);
    expect(files.filter((path) => /\.test\.|\.work\//.test(path))).toEqual([]);
  });

  it("is built by prepack", () => {
    expect(manifest.scripts.prepack).toBe("npm run build");
    expect(manifest.scripts.build).toMatch(/^rolldown .* && tsc -p tsconfig\.types\.json$/);
  });

  it("imports only packages that are installed with it", () => {
    const known = [
      ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
      ...builtinModules,
    ];
    for (const path of files.filter((path) => /\.(?:js|d\.ts)$/.test(path)))
      for (const name of importedPackages(path)) expect(known, `${path} imports ${name}`).toContain(name);
  });

  it("can import every export", () => {
    const script = `for (const name of ${JSON.stringify(exported)}) {
      const options = name.endsWith(".json") ? { with: { type: "json" } } : {};
      console.log(name, Object.keys(await import(name, options)).length > 0);
    }`;
    expect(node("--input-type=module", "-e", script)).toBe(exported.map((name) => `${name} true\n`).join(""));
  });

  it("runs lazarus --help", () => {
    expect(node(join(installed, "bin", "lazarus.js"), "--help")).toContain("Usage: lazarus <command>");
  });

  it("has types that a strict TypeScript project accepts, with the example of every entry and those of the guide to runs", () => {
    cpSync(join(ROOT, "examples", "library"), join(project, "examples"), { recursive: true });
    const imports = exported
      .filter((name) => !name.endsWith(".json"))
      .map((name, n) => `export * as entry${n} from ${JSON.stringify(name)};\n`);
    writeFileSync(join(project, "examples", "entries.ts"), imports.join(""));
    writeFileSync(join(project, "package.json"), '{ "type": "module" }');
    const guide = readFileSync(join(ROOT, "docs", "runs.md"), "utf8");
    const blocks = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map((found) => found[1]!);
    expect(blocks.length).toBe(4);
    for (const [n, block] of blocks.entries())
      writeFileSync(join(project, "examples", `guide${n}.ts`), `${block}\nexport {};\n`);
    for (const [name, text] of Object.entries(GUIDE)) writeFileSync(join(project, "examples", name), text);
    const compilerOptions = {
      ...{ target: "es2022", lib: ["esnext"], types: ["node"], module: "nodenext", noEmit: true },
      ...{
        strict: true,
        noUncheckedIndexedAccess: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
      },
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["examples"] }));
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = spawnSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], {
      cwd: project,
      encoding: "utf8",
    });
    // The types of other packages have errors under these options.
    const isOurs = (line: string) => /^(?:examples|node_modules\/lazarus)\//.test(line);
    expect(stdout.split("\n").filter(isOurs)).toEqual([]);
    expect(stdout).not.toMatch(/^error /m);
  });
});
