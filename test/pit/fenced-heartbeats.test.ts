// A heartbeat that is being written while a new life starts, with the start at every call of the write: it never lands
// after the new life has started (INV-4). The CLI, HTTP and the library share this write path.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Config, resolveConfig } from "../../src/cell/config.ts";
import { beat } from "../../src/cell/heartbeat.ts";
import { initCell } from "../../src/cell/init.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { fenceEarlierLives } from "../../src/pit/record/store.ts";
import { ownHeartbeatMs } from "../../src/pit/view.ts";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";

const m1 = parseMissionId("m1");
/** The calls of a heartbeat's write, in order. */
const CALLS = ["create", "write", "fsync", "close", "rename"] as const;

function world() {
  const home = mkdtempSync(join(tmpdir(), "lazarus-fenced-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const { config } = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {});
  initCell(systemMachine, config, m1);
  expect(fenceEarlierLives(systemMachine, config, m1)).toBe(1);
  beat(systemMachine, config, m1, { status: "life 1", epoch: 1 });
  const state = join(config.missions_root, "m1", "state");
  return { config, state, read: () => readFileSync(join(state, "heartbeat.json"), "utf8") };
}

/** Starts the next life immediately before or after the first call of one kind. */
function startingLifeAt(config: Config, call: (typeof CALLS)[number], place: "before" | "after"): Machine {
  let pending = true;
  const start = (now: typeof place) => {
    if (now !== place || !pending) return;
    pending = false;
    fenceEarlierLives(systemMachine, config, m1);
  };
  const original = systemMachine.disk[call] as (...args: unknown[]) => unknown;
  const wrapped = (...args: unknown[]) => {
    start("before");
    const result = original(...args);
    start("after");
    return result;
  };
  return { ...systemMachine, disk: { ...systemMachine.disk, [call]: wrapped } };
}

const moments = CALLS.flatMap((call) =>
  (["before", "after"] as const)
    .filter((place) => `${place} ${call}` !== "after rename")
    .map((place) => [place, call] as const),
);

describe.each(moments)("a new life that starts %s %s", (place, call) => {
  it("fences a heartbeat of the earlier life", () => {
    const { config, state, read } = world();
    const before = read();
    const machine = startingLifeAt(config, call, place);
    expect(() => beat(machine, config, m1, { status: "too late", epoch: 1 })).toThrow(
      expect.objectContaining({ code: "EPOCH_FENCED" }),
    );
    expect(read()).toBe(before);
    expect(readdirSync(state)).toEqual(["heartbeat.json"]);
  });

  it("does not lose the heartbeat of a script without an epoch", () => {
    const { config, state, read } = world();
    beat(startingLifeAt(config, call, place), config, m1, { status: "script" });
    expect(JSON.parse(read())).toMatchObject({ status: "script" });
    expect(readdirSync(state)).toEqual(["heartbeat.json"]);
  });
});

it("a heartbeat that the keeper wrote does not count as activity of the agent", () => {
  const { config, state } = world();
  const seconds = 2_000_000_000;
  writeFileSync(join(state, "heartbeat.json"), JSON.stringify({ timestamp: seconds }));
  const cell = join(config.missions_root, "m1");
  expect(ownHeartbeatMs(config, cell)).toBe(seconds * 1000);
  writeFileSync(join(config.run_dir, "agents", "m1", "beat"), `${seconds}\n`);
  expect(ownHeartbeatMs(config, cell)).toBe(0);
});
