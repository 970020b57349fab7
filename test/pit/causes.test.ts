// Causes of an end: what the kernel reports comes first, output only counts if the agent itself failed.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const configure = (pit: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: { backoff_seconds: [0], ...pit } }));
const sh = (script: string) => ["--", "sh", "-c", script];
const startAgent = (mission: string, command: readonly string[], options: readonly string[] = []) =>
  world.call(["run", mission, "-d", "--revive", "yes", ...options, ...command]);
const evidenceOf = (mission: string) =>
  world.record(mission).end.evidence.map(({ kind }: { kind: string }) => kind);
const inState = (mission: string, state: string) =>
  world.until(`${mission} to be ${state}`, () => world.state(mission) === state);

/** A program with the name of a real agent. */
function fakeAgent(name: string, script: string): string[] {
  const path = join(world.directory, "bin", name);
  mkdirSync(join(world.directory, "bin"), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return ["--", path];
}

describe("words in the output", () => {
  it("are ignored when a signal ended the agent, or when no pattern for it matches", async () => {
    configure({ max_revivals_per_hour: 0 });
    await world.openPit();
    const words = "echo 'PASS test/rate-limit.test.ts (resets after 7 days)'; echo 'usage limit reached'";
    await startAgent(
      "signal",
      fakeAgent("claude", `${words}; echo 'API Error: 529 Overloaded'; kill -SEGV $$`),
    );
    await startAgent("other", sh(`${words}; exit 1`));
    await startAgent("disk", sh("echo 'write: ENOSPC: no space left on device'; kill -KILL $$"));
    await startAgent("disk-words", sh("echo 'write: ENOSPC: no space left on device'; exit 1"));
    for (const mission of ["signal", "other", "disk", "disk-words"]) {
      await inState(mission, "tombstone");
      expect(world.record(mission).end).toMatchObject({ class: "crash", quota_reset_ms: null });
      expect(evidenceOf(mission)).toEqual([]);
    }
    expect((await world.call(["why", "disk"])).stdout).not.toContain("disk full");
  });

  it("that match a pattern of the adapter or the user's config classify a failure", async () => {
    configure({
      quota_patterns: ["budget spent, back in (.*)"],
      auth_patterns: ["^key refused"],
      permanent_patterns: ["^cannot ever work"],
      overload_patterns: ["^server busy"],
    });
    await world.openPit();
    const failing = (line: string) => sh(`echo '${line}'; exit 1`);
    await startAgent("quota", failing("budget spent, back in 2 hours"));
    await startAgent("auth", failing("key refused"));
    await startAgent("permanent", failing("cannot ever work"));
    await startAgent("overload", failing("server busy"));
    await startAgent("claude", fakeAgent("claude", "echo 'Not logged in · Please run /login'; exit 1"));
    await inState("quota", "waiting");
    expect(world.record("quota").decision.at_ms - world.record("quota").end.noticed_ms).toBe(7_200_000);
    await inState("auth", "asking");
    await inState("claude", "asking");
    await inState("permanent", "tombstone");
    await inState("overload", "waiting");
    for (const mission of ["quota", "auth", "permanent", "overload"])
      expect(world.record(mission).end.class).toBe(mission);
    expect((await world.call(["why", "claude"])).stdout).toContain("Not logged in");
  });
});

describe("the log tail", () => {
  it("contains the message of an exception in Node", async () => {
    await world.openPit();
    const script =
      "function f(n) { if (n) f(n - 1); else throw new RangeError('the queue is empty'); } f(30)";
    await world.call(["run", "m1", "-d", "--", process.execPath, "-e", script]);
    await inState("m1", "asking");
    expect((await world.call(["why", "m1"])).stdout).toContain("RangeError: the queue is empty");
  });
});

describe("an outage", () => {
  it("is retried until it ends: no limit, no tombstone, no older checkpoint", async () => {
    configure({
      overload_backoff_seconds: [0.05],
      max_revivals_per_hour: 2,
      alike_crashes_per_step: 2,
    });
    await world.call(["init", "m1"]);
    const file = join(world.missions, "m1", "worktree", "work");
    writeFileSync(file, "old\n");
    await world.call(["checkpoint", "m1"]);
    writeFileSync(file, "new\n");
    await world.openPit();
    const script = `[ "$LAZARUS_EPOCH" -ge 8 ] && exec sleep 600; echo 'API Error: 529 Overloaded.'; exit 1`;
    await startAgent("m1", fakeAgent("claude", script));
    await world.until("life 8", () => world.life("m1").epoch === 8 && world.state("m1") === "running");
    expect(readFileSync(file, "utf8")).toBe("new\n");
    expect(world.record("m1")).toMatchObject({ steps_back: 0, tombstone: null, revivals_ms: [], deaths: [] });
  });

  it("of a program without patterns backs off; three equal failures are no reason to give up", async () => {
    configure({ max_revivals_per_hour: 20, step_back_after_seconds: 600 });
    await world.openPit();
    const script = `echo "$LAZARUS_EPOCH" >> done; [ "$LAZARUS_EPOCH" -ge 5 ] && exec sleep 600; echo refused; exit 1`;
    await startAgent("m1", sh(script));
    await world.until("life 5", () => world.life("m1").epoch === 5 && world.state("m1") === "running");
    expect(world.record("m1")).toMatchObject({ tombstone: null, steps_back: 0 });
    // There is an older checkpoint, and the files are not rolled back to it.
    expect(world.checkpoints("m1")[0]!.reason).toBe("baseline");
    const done = () => readFileSync(join(world.missions, "m1", "worktree", "done"), "utf8");
    await world.until("the work of all lives", () => done() === "1\n2\n3\n4\n5\n");
  });
});

describe("a pattern that never ends", () => {
  it("is skipped and named; the pit and other agents are not affected", async () => {
    configure({ quota_patterns: ["(a+)+$", "^budget spent"] });
    await world.openPit();
    const line = `${"a".repeat(60)}!`;
    await startAgent("m1", sh(`echo budget spent; echo ${line}; exit 1`));
    await startAgent("m2", sh("exec sleep 600"));
    process.kill(world.life("m2").agent.pid, "SIGKILL");
    await world.until("life 2 of the other", () => world.life("m2").epoch === 2);
    await inState("m1", "waiting");
    expect(world.record("m1").end.class).toBe("quota");
    expect((await world.call(["why", "m1"])).stdout).toContain("(a+)+$");
    const daemonLog = (await world.call(["events", "m1", "--json", "-n", "0"])).stdout;
    expect(daemonLog).toContain("(a+)+$");
    expect(existsSync(join(world.home, "run", "pit.lock"))).toBe(true);
  });
});

describe("a stall", () => {
  const waitForStall = (mission: string) =>
    world.until(`a stall of ${mission}`, () => world.record(mission).end.kind === "stall");

  it("is not hidden by a file from the future", async () => {
    configure({ grace_seconds: 1 });
    await world.openPit();
    await startAgent("m1", sh("touch -d 2100-01-01 later .; exec sleep 600"), ["--stall", "1"]);
    await waitForStall("m1");
  });

  it("is not mere silence: activity of any process of the life counts", async () => {
    configure({ grace_seconds: 1 });
    const cwd = join(world.directory, "elsewhere");
    mkdirSync(cwd);
    await world.openPit();
    const limit = ["--stall", "4", "--no-baseline"];
    const write = (path: string) => sh(`while :; do echo x > ${path}; sleep 0.3; done`);
    await startAgent("artifacts", write('"$LAZARUS_CELL/artifacts/report"'), limit);
    await startAgent("elsewhere", write("file"), [...limit, "--cwd", cwd]);
    await startAgent(
      "daemon",
      sh("setsid sh -c 'while :; do echo x > file; sleep 0.3; done' & exec sleep 600"),
      limit,
    );
    await startAgent("compute", sh("while :; do :; done"), limit);
    const work = ["artifacts", "elsewhere", "daemon", "compute"];
    // Started last: when it has been silent for too long, the others have run for longer than that.
    await startAgent("silent", sh("exec sleep 600"), limit);
    await waitForStall("silent");
    for (const mission of work)
      expect([mission, world.life(mission).epoch, world.record(mission).stalled]).toEqual([mission, 1, null]);
  });
});
