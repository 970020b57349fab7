// scripts/ensure.mjs in a small clone, with stand-ins for npm, rolldown and tsc that log how they are called.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const LOCK = {
  packages: {
    "": { version: "0.1.0" },
    "node_modules/a": { version: "1.0.0" },
    "node_modules/only-on-mac": { version: "1.0.0", optional: true },
  },
};

let clone: string;
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "lazarus-ensure-"));
  cpSync(join(ROOT, "scripts"), join(clone, "scripts"), { recursive: true });
  for (const name of ["package.json", "rolldown.config.ts", "tsconfig.json", "tsconfig.types.json"])
    write(name, "{}");
  write("package-lock.json", JSON.stringify(LOCK));
  write("src/index.ts", "");
  write("tools/npm", `#!/bin/sh\necho npm "$@" >> "${clone}/calls"\n[ ! -e "${clone}/offline" ]\n`, 0o755);
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true });
  writeFileSync(join(clone, path), text, { mode });
}

/** As `npm ci` leaves it. */
function fillNodeModules(version = "1.0.0"): void {
  const installed = { packages: { "node_modules/a": { version } } };
  write("node_modules/.package-lock.json", JSON.stringify(installed));
  write("node_modules/node/package.json", "{}");
  mkdirSync(join(clone, "node_modules/node/bin"), { recursive: true });
  rmSync(join(clone, "node_modules/node/bin/node"), { force: true });
  symlinkSync(process.execPath, join(clone, "node_modules/node/bin/node"));
  const tool = (name: string, output: string) => `
    const fs = process.getBuiltinModule("node:fs");
    fs.appendFileSync("calls", "${name}\\n");
    fs.mkdirSync("dist/${dirname(output)}", { recursive: true });
    fs.writeFileSync("dist/${output}", "");`;
  write("node_modules/rolldown/bin/cli.mjs", tool("rolldown", "cli/main.js"));
  write("node_modules/typescript/bin/tsc", tool("tsc", "types/index.d.ts"));
}

function ensure(...args: string[]): { calls: string[]; status: number | null; stderr: string } {
  rmSync(join(clone, "calls"), { force: true });
  const { status, stderr } = spawnSync(process.execPath, [join(clone, "scripts", "ensure.mjs"), ...args], {
    encoding: "utf8",
    env: { PATH: [join(clone, "tools"), "/usr/bin", "/bin"].join(delimiter) },
  });
  let calls: string[] = [];
  try {
    calls = readFileSync(join(clone, "calls"), "utf8").trimEnd().split("\n");
  } catch {}
  return { calls, status, stderr };
}

it("installs what is missing", () => {
  expect(ensure()).toMatchObject({ calls: ["npm ci --loglevel=error"], status: 0 });
});

it("builds what is missing, then does nothing", () => {
  fillNodeModules();
  expect(ensure()).toMatchObject({ calls: ["rolldown", "tsc"], status: 0 });
  expect(ensure()).toEqual({ calls: [], status: 0, stderr: "" });
});

it("installs again when a version differs, not when the lock file is merely newer", () => {
  fillNodeModules();
  ensure();
  utimesSync(join(clone, "package-lock.json"), 4e9, 4e9);
  expect(ensure().calls).toEqual([]);
  fillNodeModules("0.9.0");
  expect(ensure().calls).toContain("npm ci --loglevel=error");
});

it("builds again when a source is newer, not for a test", () => {
  fillNodeModules();
  ensure();
  write("src/index.test.ts", "");
  utimesSync(join(clone, "src/index.test.ts"), 4e9, 4e9);
  expect(ensure().calls).toEqual([]);
  utimesSync(join(clone, "src/index.ts"), 4e9, 4e9);
  expect(ensure().calls).toEqual(["rolldown", "tsc"]);
});

it("--install does not build", () => {
  fillNodeModules();
  expect(ensure("--install").calls).toEqual([]);
});

it("--build does not replace node_modules, and prints how to", () => {
  fillNodeModules("0.9.0");
  const { calls, stderr } = ensure("--build");
  expect(calls).toEqual(["rolldown", "tsc"]);
  expect(stderr).toContain("node_modules does not match package-lock.json; to install: npm ci\n");
});

it("--build does nothing without development packages", () => {
  expect(ensure("--build")).toMatchObject({ calls: [], status: 0 });
});

it("fails when the installation fails", () => {
  write("offline", "");
  expect(ensure()).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^npm ci --loglevel=error failed with exit code 1$/m),
  });
});

it("shows what it does where there is no terminal", () => {
  fillNodeModules();
  expect(ensure().stderr.replaceAll(/\d+ s/g, "<time>")).toBe(
    "Building dist … <time>\nBuilt dist in <time>\n",
  );
});
