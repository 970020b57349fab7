// Heartbeats of missions: what a beat writes, keeps and refuses.
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createFaultyDisk } from "../testing/faulty-disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import { type Config, resolveConfig } from "./config.ts";
import { beat } from "./heartbeat.ts";
import { initCell } from "./init.ts";
import { parseMissionId } from "./mission-id.ts";

const MISSION = parseMissionId("m1");
const START_MS = 1_800_000_000_000;

let home: string;
let config: Config;
let file: string;
let machine: ReturnType<typeof createSimulatedMachine>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-beat-"));
  config = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {}).config;
  machine = createSimulatedMachine({ disk: systemDisk, startMs: START_MS });
  initCell(machine, config, MISSION);
  file = join(config.missions_root, "m1/state/heartbeat.json");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const stored = () => JSON.parse(readFileSync(file, "utf8"));

describe("a beat", () => {
  it("writes mission_id, timestamp and status, with two-space indent and a final newline", async () => {
    await machine.clock.advance(1500);
    beat(machine, config, MISSION, { status: "sorting" });
    expect(readFileSync(file, "utf8")).toBe(
      '{\n  "mission_id": "m1",\n  "timestamp": 1800000001.5,\n  "status": "sorting"\n}\n',
    );
  });

  it("changes bootstrapped to alive, and keeps a status until it is changed", () => {
    expect(beat(machine, config, MISSION).heartbeat.status).toBe("alive");
    beat(machine, config, MISSION, { status: "sorting" });
    expect(beat(machine, config, MISSION).heartbeat.status).toBe("sorting");
    expect(beat(machine, config, MISSION, { status: "" }).heartbeat.status).toBe("");
  });

  it("keeps fields of any type that other tools added", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (extra) => {
        const before = JSON.stringify({ ...extra, mission_id: "m1", timestamp: 1, status: "x" });
        writeFileSync(file, before);
        beat(machine, config, MISSION);
        expect(stored()).toEqual({ ...JSON.parse(before), timestamp: START_MS / 1000 });
      }),
    );
  });

  it("keeps the text of numbers that JavaScript cannot represent", () => {
    writeFileSync(file, '{"started_ns": 1763250781123456789, "deep": [{"big": 1e400}], "timestamp": 1}');
    beat(machine, config, MISSION);
    const text = readFileSync(file, "utf8");
    expect(text).toContain('"started_ns": 1763250781123456789');
    expect(text).toContain('"big": 1e400');
  });

  it("returns the time since the previous heartbeat", async () => {
    await machine.clock.advance(400_000);
    expect(beat(machine, config, MISSION).gapSeconds).toBe(400);
    expect(beat(machine, config, MISSION).gapSeconds).toBe(0);
  });

  it("after the wall clock was set back has a negative gap and writes the new time", () => {
    machine.clock.jumpWallClock(-3_600_000);
    expect(beat(machine, config, MISSION).gapSeconds).toBe(-3600);
    expect(stored().timestamp).toBe(START_MS / 1000 - 3600);
  });

  it("for a mission without a cell is an error with a hint", () => {
    expect(() => beat(machine, config, parseMissionId("none"))).toThrow(
      expect.objectContaining({ code: "MISSION_UNKNOWN", hint: "lazarus init none" }),
    );
  });
});

describe("an invalid heartbeat file", () => {
  it.each<[string, () => void, string]>([
    ["not JSON", () => writeFileSync(file, "{"), "not JSON"],
    ["binary", () => writeFileSync(file, Buffer.from([0, 255, 254, 1])), "not JSON"],
    ["a list", () => writeFileSync(file, "[1]"), "JSON, but not an object"],
    ["far too large", () => truncateSync(file, 2 ** 31), "2147483648 bytes, more than the 65536 allowed"],
    [
      "a link out of the cell",
      () => {
        rmSync(file);
        writeFileSync(join(home, "precious"), "precious");
        symlinkSync(join(home, "precious"), file);
      },
      "a symbolic link, not a file",
    ],
  ])("that is %s is replaced, and the result says so", (_, spoil, reason) => {
    spoil();
    expect(beat(machine, config, MISSION)).toMatchObject({ replaced: reason, gapSeconds: null });
    expect(lstatSync(file).isFile()).toBe(true);
    expect(stored().mission_id).toBe("m1");
    if (reason.includes("link")) expect(readFileSync(join(home, "precious"), "utf8")).toBe("precious");
  });

  it("that is a directory is an error, and its content stays", () => {
    rmSync(file);
    mkdirSync(file);
    writeFileSync(join(file, "inside"), "x");
    expect(() => beat(machine, config, MISSION)).toThrow(
      expect.objectContaining({
        code: "CELL_DAMAGED",
        message: `the heartbeat ${file} is a directory, not a file`,
      }),
    );
    expect(readdirSync(join(file, ".."))).toEqual(["heartbeat.json"]);
  });

  it("outside the cell (state is a link) is refused", () => {
    const state = join(config.missions_root, "m1/state");
    rmSync(state, { recursive: true });
    mkdirSync(join(home, "outside"));
    symlinkSync(join(home, "outside"), state);
    expect(() => beat(machine, config, MISSION)).toThrow(expect.objectContaining({ code: "CELL_DAMAGED" }));
    expect(readdirSync(join(home, "outside"))).toEqual([]);
  });
});

it("a full disk is reported, and the last heartbeat stays intact", () => {
  const before = readFileSync(file, "utf8");
  const disk = createFaultyDisk(systemDisk, { code: "ENOSPC", at: ({ method }) => method === "write" });
  expect(() => beat({ ...machine, disk }, config, MISSION)).toThrow(
    expect.objectContaining({ code: "DISK_FULL" }),
  );
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(readdirSync(join(file, ".."))).toEqual(["heartbeat.json"]);
});
