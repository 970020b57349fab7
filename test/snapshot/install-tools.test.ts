// The script that installs tools for the tests: silent when they are installed, a reason on stderr when it cannot install
// them, and always exit code 0. Every program that it calls is a stub.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const SCRIPT = join(import.meta.dirname, "../../scripts/install-tools.sh");
const TOOLS = ["skopeo", "umoci", "busybox", "shellcheck"];
let bin: string;
beforeEach(() => {
  bin = fs.mkdtempSync(join(tmpdir(), "lazarus-tools-"));
});
afterEach(() => fs.rmSync(bin, { recursive: true }));

const stub = (name: string, body: string) =>
  fs.writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });

function run(): { status: number | null; stderr: string; calls: string[] } {
  const { status, stderr } = spawnSync("/bin/sh", [SCRIPT], { encoding: "utf8", env: { PATH: bin } });
  const log = join(bin, "calls");
  const calls = fs.existsSync(log) ? fs.readFileSync(log, "utf8").trimEnd().split("\n") : [];
  return { status, stderr, calls };
}

/** An apt-get that logs its last argument and exits with this code. */
function stubApt(code: number): void {
  stub("timeout", 'shift; exec "$@"');
  stub("apt-get", `for word; do last="$word"; done; echo "$last" >> "${join(bin, "calls")}"; exit ${code}`);
}

describe("install-tools", () => {
  it("does nothing and prints nothing when all are installed", () => {
    for (const name of TOOLS) stub(name, "");
    expect(run()).toEqual({ status: 0, stderr: "", calls: [] });
  });

  it("explains what is missing without root and without apt-get", () => {
    for (const name of TOOLS.slice(1)) stub(name, "");
    stub("id", "echo 1000");
    expect(run()).toMatchObject({ status: 0, stderr: "tools: skopeo not installed: needs root\n" });
    stub("id", "echo 0");
    expect(run()).toMatchObject({ status: 0, stderr: "tools: skopeo not installed: needs apt-get\n" });
  });

  it("installs what is missing, runs an update only when that fails, and explains a failure", () => {
    stub("id", "echo 0");
    stubApt(0);
    expect(run()).toEqual({ status: 0, stderr: "", calls: [TOOLS.at(-1)] });
    stubApt(1);
    expect(run()).toEqual({
      status: 0,
      stderr: `tools: ${TOOLS.join(" ")} not installed: apt-get failed\n`,
      calls: [TOOLS.at(-1), TOOLS.at(-1), "update"],
    });
  });
});
