// Compatibility with Python in both directions: files written by an independent Python script open unchanged, and files
// written here pass its hash check. The fixtures are its output; where Python is installed, the script also runs live.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExact, pythonJson } from "../../src/flow/document/python-json.ts";
import { changeFlow, listFlows, resumeFlow, startFlow } from "../../src/flow/index.ts";
import { sha256Hex } from "../../src/platform/sha256.ts";
import { createFixture, REPORT } from "./fixture.ts";

const SCRIPT = join(import.meta.dirname, "python_flows.py");
const FIXTURES = join(import.meta.dirname, "fixtures", "from-python");
const OURS = join(import.meta.dirname, "fixtures", "from-lazarus");
const hasPython =
  spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 7))"]).status === 0;
const python = (...args: string[]) => execFileSync("python3", [SCRIPT, ...args], { encoding: "utf8" });
if (!hasPython)
  process.stderr.write("skipped: the live Python tests, since python3 3.7 or later is not installed\n");

const inFixtures = (directory: string) => readdirSync(directory).filter((name) => name.endsWith(".json"));

describe("files of the Python tool", () => {
  it("can be opened unchanged, with valid hashes", () => {
    using fixture = createFixture();
    cpSync(FIXTURES, join(fixture.root, "memory", "checkpoints"), { recursive: true });
    const { flows, bad } = listFlows(fixture.root);
    expect(bad).toEqual([]);
    expect(flows.map(({ place }) => place.stem)).toEqual(
      inFixtures(FIXTURES)
        .map((name) => name.slice(0, -5))
        .sort(),
    );
  });

  it.for(inFixtures(FIXTURES).filter((name) => !name.startsWith("done")))(
    "an update of %s preserves unknown fields exactly",
    async (name) => {
      using fixture = createFixture();
      cpSync(FIXTURES, join(fixture.root, "memory", "checkpoints"), { recursive: true });
      const workflow = name.slice(0, -5);
      const before = parseExact(readFileSync(fixture.file(workflow), "utf8")) as Record<string, unknown>;
      await changeFlow(fixture.workspace, { workflow }, { complete: ["fetch"] }, fixture.owner());
      const after = parseExact(readFileSync(fixture.file(workflow), "utf8")) as Record<string, unknown>;
      expect(Object.keys(after).sort()).toEqual(
        [...new Set([...Object.keys(before), "checkpointHash"])].sort(),
      );
      for (const key of ["custom", "extension", "zzz", "notes", "idempotencyKey", "expiresAt"]) {
        expect(JSON.stringify(after[key])).toBe(JSON.stringify(before[key]));
      }
      if (hasPython) expect(python("check", fixture.file(workflow))).toBe("ok\n");
    },
  );

  it("may have a lock without an owner, which only --steal-lock takes", async () => {
    using fixture = createFixture();
    cpSync(join(FIXTURES, "plain.json"), fixture.file("plain"), { recursive: true });
    fixture.write("memory/checkpoints/plain.lock", "2026-11-15T23:53:01.123456+00:00");
    const request = { me: fixture.owner() };
    const passed = await resumeFlow(fixture.workspace, request);
    expect(passed.found).toBeUndefined();
    expect(passed.passedOver[0]).toMatchObject({ workflowId: "plain", why: "locked" });
    const stolen = await resumeFlow(fixture.workspace, { ...request, stealLock: true });
    expect(stolen.found?.document.workflowId).toBe("plain");
  });
});

describe("files of Lazarus", () => {
  it.skipIf(!hasPython)("pass the Python tool's hash check: stored fixtures and new files", async () => {
    const stored = inFixtures(OURS).map((name) => join(OURS, name));
    expect(stored.length).toBeGreaterThan(2);
    expect(
      python("check", ...stored)
        .trim()
        .split("\n")
        .every((line) => line === "ok"),
    ).toBe(true);
    using fixture = createFixture();
    const me = fixture.owner();
    await startFlow(fixture.workspace, { ...REPORT, notes: "Grüße 😀 \u007f \u2028" }, { me });
    expect(python("check", fixture.file("report"))).toBe("ok\n");
    await changeFlow(fixture.workspace, REPORT, { complete: ["fetch"] }, me);
    expect(python("check", fixture.file("report"))).toBe("ok\n");
    python("update", fixture.file("report"), "write");
    const { found } = await resumeFlow(fixture.workspace, { me });
    expect(found?.document.completedSteps).toEqual(["fetch", "write"]);
  });

  it.skipIf(!hasPython)("hash any JSON as Python's json.dumps does", () => {
    const value = fc.letrec((tie) => ({
      number: fc.oneof(
        fc.integer(),
        fc.double({ noNaN: true }),
        fc.maxSafeInteger(),
        fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
      ),
      text: fc.string({ unit: "binary" }),
      any: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        tie("text"),
        tie("number"),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("any"), { maxLength: 4 }),
        fc.dictionary(tie("text") as fc.Arbitrary<string>, tie("any"), { maxKeys: 5 }),
      ),
    })).any;
    const object = fc.dictionary(fc.string({ unit: "binary" }), value, { maxKeys: 8 });
    const texts = fc.sample(object, { numRuns: 600, seed: 20261115 }).map(toJson);
    // Number formats that are valid in a file but that the serializer above never writes.
    texts.push(
      ...[
        "1.0",
        "-0",
        "-0.0",
        "1e5",
        "1E+5",
        "1e-5",
        "1e400",
        "0.00001",
        "1e16",
        "1e15",
        "123456789.0e3",
      ].map((n) => `{"n":${n}}`),
    );
    const { stdout } = spawnSync("python3", [SCRIPT, "canonical"], {
      input: texts.join("\n"),
      encoding: "utf8",
    });
    const theirs = stdout.trim().split("\n");
    expect(theirs.length).toBe(texts.length);
    for (const [i, text] of texts.entries()) {
      const ours = sha256Hex(pythonJson(parseExact(text) as object, "checkpointHash", true));
      expect(ours, `for ${text}`).toBe(theirs[i]);
    }
  });
});

/** JSON with big integers written out, in ASCII so that line breaks of Unicode cannot split the input. */
function toJson(value: unknown): string {
  const raw = JSON as unknown as { rawJSON(text: string): unknown };
  const text = JSON.stringify(value, (_key, each) =>
    typeof each === "bigint" ? raw.rawJSON(String(each)) : each,
  );
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
