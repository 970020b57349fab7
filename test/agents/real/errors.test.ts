// Real agent CLIs whose provider or conversation fails: the right class, the right wait, and never a loop of paid calls.
// npm run test:agents -- errors; AGENTS=claude,codex limits the CLIs. The outage really lasts 60 s; other waits are read
// from the decision and cut short.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { AGENTS } from "./agents.ts";
import { installAgent, VERSIONS } from "./install.ts";
import { createRealWorld, MISSION, type RealWorld, STEPS, TRANSCRIPTS } from "./real-world.ts";
import { keepResult } from "./results.ts";

const names = Object.keys(AGENTS).filter((name) => (process.env.AGENTS ?? name).split(",").includes(name));
const ALL_ONCE = Object.fromEntries(Array.from({ length: STEPS }, (_, index) => [String(index + 1), 1]));
const OUTAGE_MS = 60_000;
const RESET_SECONDS = 600;

const waitSeconds = ({ world }: RealWorld) => {
  const { at_ms: atMs, decided_ms: decidedMs } = world.record(MISSION).decision;
  return Math.round((atMs - decidedMs) / 1000);
};
const refusals = ({ model }: RealWorld) => model.requests.filter(({ status }) => status !== 200).length;
const livesOf = ({ world }: RealWorld) => world.life(MISSION).epoch;

/** Starts it, and stops it after its second step. */
async function stopAfterTwo(real: RealWorld): Promise<void> {
  await real.world.openPit();
  real.start();
  await real.world.until("step 2", () => real.model.requests.some(({ next }) => next === 3));
  expect(real.run("stop", MISSION).exit).toBe(0);
}

const changed = (change: (text: string) => string) => (path: string) =>
  writeFileSync(path, change(readFileSync(path, "utf8")));

function replaceByLink(path: string): void {
  renameSync(path, `${path}.elsewhere`);
  symlinkSync(`${path}.elsewhere`, path);
}

describe.each(names)("%s", (name) => {
  const installed = installAgent(name);
  const runs = test.skipIf("problem" in installed);
  const bin = "bin" in installed ? installed.bin : "";
  if ("problem" in installed) process.stderr.write(`not run: ${name}: ${installed.problem}\n`);
  // Cline and OpenClaw have no conversation that can be resumed without a terminal, or damaged without others.
  const { restarts, isShared } = AGENTS[name]!;
  const runsConversation = test.skipIf("problem" in installed || restarts || isShared);
  const keep = (row: string, outcome: string) => keepResult(name, row, outcome);

  runs("overloaded (529) for 60 s: continues by itself, repeats nothing, rolls nothing back", async () => {
    await using real = await createRealWorld(name, { bin, hold: 0 });
    await real.world.openPit();
    real.model.fail({ status: 529, at: 3 });
    real.start();
    await real.world.until("the first refusal", () => refusals(real) > 0);
    setTimeout(() => real.model.fail(null), OUTAGE_MS);
    await real.untilState("finished", "asking", "tombstone");
    expect(real.world.state(MISSION)).toBe("finished");
    expect(real.effects()).toEqual(ALL_ONCE);
    expect(real.world.record(MISSION)).toMatchObject({ deaths: [], revivals_ms: [], steps_back: 0 });
    keep("529 for 60 s", livesOf(real) === 1 ? "finished, 1 life" : `finished, ${livesOf(real)} lives`);
  });

  runs("429 without a reset time: waits a minute, then continues", async () => {
    await using real = await createRealWorld(name, { bin, hold: 0 });
    await real.world.openPit();
    real.model.fail({ status: 429, at: 3 });
    real.start();
    if (AGENTS[name]!.repeats) {
      await real.world.until("the second refusal", () => refusals(real) > 1);
      keep("429", "the CLI repeats");
      return;
    }
    await real.untilState("waiting");
    expect(real.world.record(MISSION).end).toMatchObject({ class: "quota", quota_reset_ms: null });
    expect(waitSeconds(real)).toBeOneOf(Array.from({ length: 26 }, (_, index) => 47 + index));
    expect(real.why()).toContain("reset time unknown");
    const asked = refusals(real);
    real.model.fail(null);
    expect(real.run("revive", MISSION).exit).toBe(0);
    await real.untilState("finished");
    expect(refusals(real)).toBe(asked);
    expect(real.effects()).toEqual(ALL_ONCE);
    keep("429", "waits 1 min");
  });

  runs("429 with a reset time: waits for it if the CLI reports it", async () => {
    await using real = await createRealWorld(name, { bin, hold: 0 });
    await real.world.openPit();
    real.model.fail({ status: 429, at: 3, retryAfterSeconds: RESET_SECONDS });
    real.start();
    const { waits } = AGENTS[name]!;
    if (waits === "itself") {
      await real.world.until("a refusal", () => refusals(real) > 0);
      keep("429, retry after 10 min", "the CLI waits");
      return;
    }
    await real.untilState("waiting");
    expect(real.world.record(MISSION).end).toMatchObject({ class: "quota" });
    const seconds = waitSeconds(real);
    if (waits === "reset") {
      expect(seconds).toBeGreaterThan(RESET_SECONDS - 30);
      expect(seconds).toBeLessThanOrEqual(RESET_SECONDS + 1);
    }
    keep("429, retry after 10 min", `waits ${Math.round(seconds / 60)} min`);
  });

  runs.each([
    ["401", "auth", 401],
    ["context too long", "permanent", 400],
  ] as const)("%s: asks", async (row, failure, status) => {
    await using real = await createRealWorld(name, { bin, hold: 0 });
    await real.world.openPit();
    real.model.fail({ status, at: 2 });
    real.start();
    if (status === 400 && AGENTS[name]!.compacts) {
      await real.world.until("a shorter conversation", () => refusals(real) > 1);
      keep(row, "the CLI compacts");
      return;
    }
    await real.untilState("asking");
    expect(real.world.record(MISSION).end.class).toBe(failure);
    expect(livesOf(real)).toBe(1);
    keep(row, "asks");
  });

  runs("no key: asks, without any request to the model", async () => {
    await using real = await createRealWorld(name, { bin, hold: 0, noKey: true });
    await real.world.openPit();
    real.start();
    if (AGENTS[name]!.needsNoKey) {
      await real.untilState("finished");
      keep("no key", "needs none");
      return;
    }
    await real.untilState("asking");
    expect(real.world.record(MISSION).end.class).toBe("auth");
    expect(livesOf(real)).toBe(1);
    expect(real.model.requests).toEqual([]);
    keep("no key", "asks");
  });

  runsConversation("a session that the user names and the CLI does not know: asks", async () => {
    const { resume } = AGENTS[name]!;
    await using real = await createRealWorld(name, { bin, hold: 0 });
    await real.world.openPit();
    real.start(resume("Write the book"));
    await real.untilState("asking");
    expect(real.world.record(MISSION).end.evidence).toMatchObject([{ kind: "unknown-session" }]);
    expect(livesOf(real)).toBe(1);
    keep("unknown session", "asks");
  });

  runsConversation("its conversation is gone, and the copy too: starts over, and says so", async () => {
    await using real = await createRealWorld(name, { bin });
    await stopAfterTwo(real);
    for (const path of TRANSCRIPTS)
      rmSync(join(real.world.directory, "user", path), { recursive: true, force: true });
    for (const path of ["conversation", "state/opencode"])
      rmSync(join(real.world.missions, MISSION, path), { recursive: true, force: true });
    expect(real.run("revive", MISSION).exit).toBe(0);
    await real.untilState("finished");
    expect(real.why()).toContain(`started over with a new conversation of ${name}`);
    expect(real.chapters()).toHaveLength(STEPS);
    keep("transcript deleted, with its copy", "starts over");
  });

  runsConversation.each([
    ["truncated", changed((text) => text.slice(0, Math.floor(text.length * 0.6)))],
    ["corrupt", changed((text) => `${text.slice(0, 200)}\0\0\0{"type":${text.slice(400)}`)],
    ["replaced by garbage", changed(() => "not a conversation\n")],
    ["replaced by a link", replaceByLink],
  ])("a transcript that is %s: the agent is resumed, and why says how", async (damage, harm) => {
    await using real = await createRealWorld(name, { bin });
    await stopAfterTwo(real);
    const files = Object.keys(real.transcripts());
    // The conversation is a database, which is part of the cell.
    if (files.length === 0) return;
    for (const path of files) harm(path);
    expect(real.run("revive", MISSION).exit).toBe(0);
    const state = await real.untilState("finished", "asking", "tombstone");
    expect(state).toBe("finished");
    expect(real.why()).toContain(`resumed the conversation of ${name}`);
    expect(real.effects()).toEqual(ALL_ONCE);
    keep(`transcript ${damage}`, real.why().includes("put back") ? "put back, resumed" : "resumed");
  });

  runsConversation("a session that another process has: asks, and names the process", async () => {
    await using real = await createRealWorld(name, { bin });
    await stopAfterTwo(real);
    const session = JSON.parse(
      readFileSync(join(real.world.missions, MISSION, "conversation", "session.json"), "utf8"),
    ).session as string;
    real.model.think(3);
    const OPENCODE_DB = join(real.world.missions, MISSION, "state", "opencode", "opencode.db");
    const other = spawn(name, [...AGENTS[name]!.resume("go on", session)], {
      cwd: real.work,
      env: { ...real.env, OPENCODE_DB },
      stdio: "ignore",
      detached: true,
    });
    const before = real.model.requests.length;
    await real.world.until("the other process", () => real.model.requests.length > before);
    const { exit, stderr } = real.run("revive", MISSION);
    expect(exit).not.toBe(0);
    expect(stderr).toMatch(/is in use by process \d+/);
    process.kill(-other.pid!, "SIGKILL");
    await once(other, "exit");
    real.model.think(null);
    expect(real.run("revive", MISSION).exit).toBe(0);
    await real.untilState("finished");
    expect(real.chapters()).toHaveLength(STEPS);
    keep("session in use", "refused");
  });

  test.skipIf("problem" in installed || name !== "codex")(
    "doctor: it trusts the hooks of a run",
    async () => {
      await using real = await createRealWorld(name, { bin, hold: 0 });
      expect(real.run("doctor").stdout).toContain("hooks of codex: it trusts those that lazarus run passes");
    },
  );

  runsConversation(
    "a version that is newer than the tested one: is resumed, and doctor says so",
    async () => {
      await using real = await createRealWorld(name, { bin });
      const { package: pack } = VERSIONS[name]!;
      const directory = join(real.world.directory, "newer", "node_modules", pack);
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, "package.json"), JSON.stringify({ name: pack, version: "9999.1.0" }));
      writeFileSync(join(directory, name), `#!/bin/sh\nexec '${bin}/${name}' "$@"\n`, { mode: 0o755 });
      const { stdout } = real.world.run(["doctor"], {
        env: { ...real.env, PATH: `${directory}:${real.env.PATH}` },
      });
      expect(stdout).toMatch(
        new RegExp(`agent ${name}: 9999\\.1\\.0.*newer than ${VERSIONS[name]!.version}`),
      );
      await real.world.openPit();
      real.start(undefined, join(directory, name));
      await real.world.until("step 3", () => real.model.requests.some(({ next }) => next === 3));
      real.kill();
      await real.untilState("finished");
      expect(real.why()).toContain(`resumed the conversation of ${name}`);
      expect(real.effects()).toEqual(ALL_ONCE);
      keep("newer version", "resumed");
    },
  );
});
