// SIGKILL at every flow.* crash point, of start, update, complete, release, resume and take-over, quarantine, accept-edit,
// once, exec, prune, audit and alerts. After each: files are valid, the same command finishes the work, and nothing is
// silently repeated. New crash points are included automatically; one that no scenario reaches fails the test.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listFlows } from "../../src/flow/index.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { createFixture, type Ended, type Fixture, runLine } from "./fixture.ts";

const SOURCES = join(import.meta.dirname, "..", "..", "src", "flow");
const POINTS = listCrashPoints(SOURCES).map(({ name }) => name);

interface Scenario {
  /** Command lines to run first. */
  readonly before?: readonly string[];
  prepare?(fixture: Fixture): void;
  /** The command line that is killed, then run again. */
  readonly line: string;
  /** Exit codes that the second run may end with. */
  readonly ends?: readonly number[];
  check?(fixture: Fixture, second: Ended): void;
}

const OWNED = "--owner tester";
const start = `flow start -w report --agent anna --idempotency k1 --step fetch --remaining fetch send ${OWNED}`;
const log = (fixture: Fixture) =>
  existsSync(join(fixture.root, "log")) ? readFileSync(join(fixture.root, "log"), "utf8") : "";

const SCENARIOS: Record<string, Scenario> = {
  start: {
    line: start,
    // The first run may have written the file before it was killed; then the second is refused.
    ends: [0, 7],
    check: (fixture) => expect(fixture.read("report").currentStep).toBe("fetch"),
  },
  "start after done work": {
    before: [start, `flow complete -w report ${OWNED}`],
    line: start.replace("k1", "k2"),
    ends: [0, 7],
    check: (fixture) => expect(fixture.read("report").idempotencyKey).toBe("k2"),
  },
  update: {
    before: [start],
    line: `flow update -w report --complete fetch ${OWNED}`,
    check: (fixture) => expect(fixture.read("report").completedSteps).toEqual(["fetch"]),
  },
  complete: {
    before: [start, `flow resume ${OWNED}`],
    line: `flow complete -w report ${OWNED}`,
    check(fixture) {
      expect(fixture.read("report").status).toBe("done");
      expect(existsSync(join(fixture.root, "memory/checkpoints/report.lock"))).toBe(false);
    },
  },
  release: { before: [start, `flow resume ${OWNED}`], line: `flow release -w report ${OWNED}` },
  resume: {
    before: [start],
    line: `flow resume -w report ${OWNED}`,
    check: (_fixture, { stdout }) => expect(JSON.parse(stdout).workflowId).toBe("report"),
  },
  "take-over": {
    before: [start, "flow resume --owner someone"],
    line: `flow resume -w report --steal-lock ${OWNED}`,
    check: (fixture) =>
      expect(readFileSync(join(fixture.root, "memory/checkpoints/report.lock"), "utf8")).toContain("tester"),
  },
  quarantine: {
    before: [start],
    prepare: (fixture) => writeFileSync(fixture.file("bad"), "junk"),
    line: `flow resume ${OWNED}`,
    check(fixture, { stdout }) {
      expect(JSON.parse(stdout).workflowId).toBe("report");
      expect(listFlows(fixture.root).bad).toMatchObject([
        { workflowId: "bad", quarantined: true, reason: "is not JSON" },
      ]);
    },
  },
  "accept-edit": {
    before: [start],
    prepare: (fixture) =>
      writeFileSync(
        fixture.file("report"),
        readFileSync(fixture.file("report"), "utf8").replace("anna", "ben"),
      ),
    line: "flow accept-edit -w report",
    // 6: it was accepted before the kill, so nothing is left to accept.
    ends: [0, 6],
    check: (fixture) => expect(fixture.read("report").agentId).toBe("ben"),
  },
  once: {
    before: [start],
    line: `flow once -w report --key send ${OWNED} -- ./effect send`,
    ends: [0, 4],
    check: checkEffects(["send"]),
  },
  exec: { line: "flow exec plan.yaml", ends: [0, 4], check: checkEffects(["a", "b"]) },
  prune: {
    before: [start, `flow complete -w report ${OWNED}`],
    line: `flow prune --keep-days 0 ${OWNED}`,
    check(fixture) {
      expect(listFlows(fixture.root).flows).toEqual([]);
      expect(
        readFileSync(join(fixture.root, "memory/checkpoints/.lazarus/tombstones.jsonl"), "utf8"),
      ).toContain('"k1"');
    },
  },
  audit: {
    before: [start],
    prepare: (fixture) =>
      fixture.write("memory/checkpoints/.lazarus/audit.jsonl", `${"x".repeat(1024 * 1024)}\n`),
    line: "flow selfcheck",
    check(fixture) {
      const files = readdirSync(join(fixture.root, "memory/checkpoints/.lazarus")).filter((name) =>
        name.startsWith("audit"),
      );
      expect(files.length).toBeGreaterThanOrEqual(2);
    },
  },
  alert: {
    before: [start],
    line: "flow selfcheck --stale-min 0 --alert-command ./alert",
    ends: [3],
    check: (fixture) => expect(log(fixture)).toMatch(/^(alert\n){1,2}$/),
  },
  "update after a killed update": {
    before: [start],
    line: `flow update -w report --complete fetch ${OWNED}`,
    check: (fixture) => expect(fixture.read("report").completedSteps).toEqual(["fetch"]),
  },
};

/** Every effect happened exactly once; or at most once, reported as unknown by exit code 4. */
function checkEffects(names: readonly string[]): NonNullable<Scenario["check"]> {
  return (fixture, { code }) => {
    const counts = names.map(
      (name) =>
        log(fixture)
          .split("\n")
          .filter((line) => line === name).length,
    );
    if (code === 0) expect(counts).toEqual(names.map(() => 1));
    else expect(Math.max(...counts)).toBeLessThanOrEqual(1);
  };
}

const words = (line: string) => line.split(" ");

async function prepare(scenario: Scenario): Promise<Fixture> {
  const fixture = createFixture();
  writeFileSync(join(fixture.root, "effect"), '#!/bin/sh\necho "$1" >> log\n', { mode: 0o755 });
  writeFileSync(join(fixture.root, "alert"), "#!/bin/sh\ncat >/dev/null; echo alert >> log\n", {
    mode: 0o755,
  });
  const plan = "workflow: nightly\nsteps:\n  - {key: a, run: ./effect a}\n  - {key: b, run: ./effect b}\n";
  writeFileSync(join(fixture.root, "plan.yaml"), plan);
  for (const line of scenario.before ?? []) {
    const { code, stderr } = await runLine(words(line), { cwd: fixture.root });
    expect(code, stderr).toBe(0);
  }
  scenario.prepare?.(fixture);
  return fixture;
}

/** Kills the scenario's line at a crash point and runs it again. False when it does not reach that point. */
async function killAndRecover(scenario: Scenario, point: string): Promise<boolean> {
  using fixture = await prepare(scenario);
  const first = await runLine(words(scenario.line), { cwd: fixture.root, crashAt: point });
  if (first.signal !== "SIGKILL") return false;
  // A flow file is always complete or absent.
  expect(
    listFlows(fixture.root).bad.filter(
      ({ workflowId }) => workflowId === "report" && scenario !== SCENARIOS["accept-edit"],
    ),
  ).toEqual([]);
  const second = await runAgain(scenario, fixture);
  expect(scenario.ends ?? [0], `${point}: ${second.stderr}`).toContain(second.code);
  scenario.check?.(fixture, second);
  await runLine(words(`flow prune ${OWNED}`), { cwd: fixture.root });
  const left = readdirSync(join(fixture.root, "memory/checkpoints")).filter((name) =>
    /\.(guard|tmp)$/.test(name),
  );
  expect(left, "left behind by prune").toEqual([]);
  return true;
}

/** Runs the line again, until no command of the killed run is still running. */
async function runAgain(scenario: Scenario, fixture: Fixture): Promise<Ended> {
  for (;;) {
    const ended = await runLine(words(scenario.line), { cwd: fixture.root });
    if (ended.code !== 10) return ended;
  }
}

/** Scenarios that reach a crash point, by the operation in its name. Default: the scenario of that name. */
const SHARED: Record<string, string[]> = {
  mutex: ["update", "resume"],
  lock: ["resume", "take-over"],
  change: ["update", "complete"],
  start: ["start", "start after done work"],
  quarantine: ["quarantine"],
  once: ["once", "exec"],
  selfcheck: ["alert"],
};

describe("SIGKILL at every crash point of flows", () => {
  it.concurrent.for(POINTS.filter((name) => name !== "flow.mutex.dead-found"))(
    "%s",
    async (point, { expect }) => {
      const operation = point.split(".")[1]!;
      const names = SHARED[operation] ?? [operation];
      const killed = await Promise.all(names.map((name) => killAndRecover(SCENARIOS[name]!, point)));
      expect(killed, `${point} is not reached by ${names.join(", ")}`).toContain(true);
    },
  );

  it("flow.mutex.dead-found: killed while removing the mutex of a killed process", async () => {
    const scenario = SCENARIOS["update after a killed update"]!;
    using fixture = await prepare(scenario);
    for (const point of ["flow.mutex.taken", "flow.mutex.dead-found"]) {
      const { signal } = await runLine(words(scenario.line), { cwd: fixture.root, crashAt: point });
      expect(signal, point).toBe("SIGKILL");
    }
    const { code } = await runLine(words(scenario.line), { cwd: fixture.root });
    expect(code).toBe(0);
    expect(fixture.read("report").completedSteps).toEqual(["fetch"]);
  });
});
