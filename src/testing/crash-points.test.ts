// Crash points: found in the sources, and armed in both sources and bundles.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listCrashPoints } from "./crash-points.ts";

const source = fileURLToPath(new URL("..", import.meta.url));
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-crash-points-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function sources(files: Record<string, string>): string {
  const root = mkdtempSync(join(directory, "src-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

describe("listCrashPoints", () => {
  it("finds the crash points of the platform module", () => {
    const names = listCrashPoints(join(source, "platform")).map(({ name }) => name);
    expect(names).toContain("durable.replace.renamed");
    expect(names).toContain("durable.temporary.created");
    expect(names).toEqual([...names].sort());
  });

  it("gives name, file and line, and skips comments, tests and the definition", () => {
    const root = sources({
      "b/two.ts": 'f();\n  crashPoint(\n    "b.two",\n  );\n',
      "one.ts": "// crashPoint(\"not.this\")\ncrashPoint('a.one');\n",
      "one.test.ts": 'crashPoint("nor.this");\n',
      "crash-point.ts": "export function crashPoint(name: string): void {}\n",
    });
    expect(listCrashPoints(root)).toEqual([
      { name: "a.one", file: join(root, "one.ts"), line: 2 },
      { name: "b.two", file: join(root, "b/two.ts"), line: 2 },
    ]);
  });

  it("refuses a name that is not a literal", () => {
    expect(() => listCrashPoints(sources({ "x.ts": "crashPoint(name);" }))).toThrow("x.ts:1: the name");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code to refuse.
    expect(() => listCrashPoints(sources({ "x.ts": "crashPoint(`a.${b}`);" }))).toThrow("must be a literal");
  });

  it("refuses a name used twice", () => {
    const root = sources({ "x.ts": 'crashPoint("a.b");\ncrashPoint("a.b");' });
    expect(() => listCrashPoints(root)).toThrow("x.ts:2: crash point a.b is already at");
  });
});

describe("arm-crash-point", () => {
  const program = () => {
    const path = join(directory, "program.ts");
    writeFileSync(
      path,
      `import { crashPoint } from ${JSON.stringify(join(source, "platform/crash-point.ts"))};
       import { writeSync } from "node:fs";
       for (let n: number = 1; n <= 3; n++) {
         crashPoint("test.other");
         crashPoint("test.loop");
         writeSync(1, String(n));
       }`,
    );
    return path;
  };
  const run = (arm: string, path: string, at?: string) => {
    const { LAZARUS_CRASH_AT: _, ...rest } = process.env;
    const env = at === undefined ? rest : { ...rest, LAZARUS_CRASH_AT: at };
    return spawnSync(process.execPath, ["--import", arm, path], { encoding: "utf8", env });
  };
  const arm = join(source, "testing/arm-crash-point.ts");

  it("kills the process at the first pass, or the nth", () => {
    const path = program();
    expect(run(arm, path, "test.loop")).toMatchObject({ signal: "SIGKILL", stdout: "" });
    expect(run(arm, path, "test.loop#3")).toMatchObject({ signal: "SIGKILL", stdout: "12" });
  });

  it("does nothing when the point is not reached that often, or nothing is armed", () => {
    const path = program();
    for (const at of ["test.loop#4", "test.lo", undefined]) {
      expect(run(arm, path, at), at ?? "not armed").toMatchObject({ status: 0, stdout: "123" });
    }
  });

  it("refuses an invalid value", () => {
    for (const at of ["test.loop#0", "test.loop#x", "#1"]) {
      const { status, stderr } = run(arm, program(), at);
      expect(status, at).toBe(1);
      expect(stderr).toContain("LAZARUS_CRASH_AT must be name or name#nth");
    }
  });

  it("works in a bundle, loaded as source or bundled itself", async () => {
    const bundle = await rolldown({
      input: { program: program(), arm },
      platform: "node",
      logLevel: "silent",
    });
    const out = join(directory, "dist");
    await bundle.write({ dir: out, format: "esm", minify: true, entryFileNames: "[name].mjs" });
    await bundle.close();
    for (const loaded of [arm, join(out, "arm.mjs")]) {
      expect(run(loaded, join(out, "program.mjs"), "test.loop#2")).toMatchObject({
        signal: "SIGKILL",
        stdout: "1",
      });
      expect(run(loaded, join(out, "program.mjs"))).toMatchObject({ status: 0, stdout: "123" });
    }
  });
});
