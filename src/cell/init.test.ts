// docs/cells.md, "Layout". Creating a cell never overwrites, never fails halfway without an error, and can always be repeated.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createFaultyDisk, type FaultCode } from "../testing/faulty-disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import { type Config, resolveConfig } from "./config.ts";
import { initCell } from "./init.ts";
import { parseMissionId } from "./mission-id.ts";
import { scanCells } from "./scan.ts";

const SIX = ["artifacts", "config", "logs", "meta", "state", "worktree"];
const MISSION = parseMissionId("m1");
const START_MS = 1_800_000_000_250;

let home: string;
let config: Config;
let root: string;
const machine = createSimulatedMachine({ disk: systemDisk, startMs: START_MS });
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-init-"));
  config = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {}).config;
  root = join(config.missions_root, "m1");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const read = (path: string) => readFileSync(join(root, path), "utf8");

describe("a new cell", () => {
  it("has the sub-directories meta config state logs artifacts worktree, with private modes", () => {
    initCell(machine, config, MISSION);
    expect(readdirSync(root).sort()).toEqual(SIX);
    for (const name of ["", ...SIX]) expect(statSync(join(root, name)).mode & 0o777).toBe(0o700);
  });

  it("has meta/mission.json with mission_id, created_at in epoch seconds and status bootstrapped", () => {
    initCell(machine, config, MISSION);
    expect(read("meta/mission.json")).toBe(
      '{\n  "mission_id": "m1",\n  "created_at": 1800000000.25,\n  "status": "bootstrapped"\n}\n',
    );
  });

  it("has config/cell.json with mission_id and absolute paths of worktree, artifacts and heartbeat_file", () => {
    initCell(machine, config, MISSION);
    expect(JSON.parse(read("config/cell.json"))).toEqual({
      mission_id: "m1",
      worktree: join(root, "worktree"),
      artifacts: join(root, "artifacts"),
      heartbeat_file: join(root, "state/heartbeat.json"),
    });
  });

  it("has state/heartbeat.json with mission_id, timestamp in epoch seconds and status bootstrapped", () => {
    initCell(machine, config, MISSION);
    expect(JSON.parse(read("state/heartbeat.json"))).toEqual({
      mission_id: "m1",
      timestamp: START_MS / 1000,
      status: "bootstrapped",
    });
  });

  it("has logs/daemon.log, empty at first", () => {
    initCell(machine, config, MISSION);
    expect(read("logs/daemon.log")).toBe("");
  });

  it("writes JSON with two-space indent and a final newline", () => {
    initCell(machine, config, MISSION);
    for (const path of ["meta/mission.json", "config/cell.json", "state/heartbeat.json"]) {
      expect(read(path)).toBe(`${JSON.stringify(JSON.parse(read(path)), null, 2)}\n`);
    }
  });

  it("is healthy in the next scan", () => {
    initCell(machine, config, MISSION);
    expect(scanCells(config, START_MS / 1000).summary).toMatchObject({ total_cells: 1, healthy: 1 });
  });

  it("returns what was created", () => {
    expect(initCell(machine, config, MISSION).made).toEqual([
      "meta/",
      "config/",
      "state/",
      "logs/",
      "artifacts/",
      "worktree/",
      "logs/daemon.log",
      "meta/mission.json",
      "config/cell.json",
      "state/heartbeat.json",
    ]);
  });

  it("has the directories of its own config, and those of its seed files", () => {
    const other = { ...config, required_subdirs: ["inbox"], heartbeat_file: "pulse/deep/now.json" };
    initCell(machine, other, MISSION);
    expect(readdirSync(root).sort()).toEqual(["config", "inbox", "logs", "meta", "pulse"]);
    expect(existsSync(join(root, "pulse/deep/now.json"))).toBe(true);
  });
});

describe("an existing cell", () => {
  it("is not changed: nothing is overwritten or created", () => {
    initCell(machine, config, MISSION);
    writeFileSync(join(root, "meta/mission.json"), "mine");
    writeFileSync(join(root, "logs/daemon.log"), "a line\n");
    expect(initCell(machine, config, MISSION).made).toEqual([]);
    expect(read("meta/mission.json")).toBe("mine");
    expect(read("logs/daemon.log")).toBe("a line\n");
  });

  it("is completed when it is partial", () => {
    mkdirSync(join(root, "worktree"), { recursive: true });
    writeFileSync(join(root, "worktree/code.ts"), "work");
    expect(initCell(machine, config, MISSION).made).not.toContain("worktree/");
    expect(read("worktree/code.ts")).toBe("work");
    expect(scanCells(config, START_MS / 1000).summary.healthy).toBe(1);
  });

  it("is swept of temporary files in Lazarus's directories, but not in the agent's", () => {
    initCell(machine, config, MISSION);
    const temporary = ".heartbeat.json.4194304.0.tmp";
    writeFileSync(join(root, "state", temporary), "");
    writeFileSync(join(root, "worktree", temporary), "perhaps work");
    initCell(machine, config, MISSION);
    expect(existsSync(join(root, "state", temporary))).toBe(false);
    expect(read(`worktree/${temporary}`)).toBe("perhaps work");
  });

  it("is refused when it contains a file where a directory is required, and the file stays", () => {
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, "state"), "not a directory");
    expect(() => initCell(machine, config, MISSION)).toThrow(
      expect.objectContaining({ code: "CELL_DAMAGED" }),
    );
    expect(read("state")).toBe("not a directory");
  });

  it("is refused when a seed file would be written through a link that leads outside", () => {
    mkdirSync(root, { recursive: true });
    const outside = join(home, "outside");
    mkdirSync(outside);
    symlinkSync(outside, join(root, "state"));
    expect(() => initCell(machine, config, MISSION)).toThrow(/state is a link that leads outside/);
    expect(readdirSync(outside)).toEqual([]);
  });

  it("is refused when a directory is a dangling link", () => {
    mkdirSync(root, { recursive: true });
    symlinkSync(join(home, "nothing"), join(root, "state"));
    expect(() => initCell(machine, config, MISSION)).toThrow(/state is a dangling link/);
  });

  it("may have its worktree elsewhere", () => {
    mkdirSync(root, { recursive: true });
    mkdirSync(join(home, "checkout"));
    symlinkSync(join(home, "checkout"), join(root, "worktree"));
    initCell(machine, config, MISSION);
    expect(scanCells(config, START_MS / 1000).summary.healthy).toBe(1);
  });
});

describe("a disk that fails", () => {
  it.each<[FaultCode, string]>([
    ["ENOSPC", "DISK_FULL"],
    ["EROFS", "DISK_READ_ONLY"],
    ["EIO", "DISK_IO"],
    ["EDQUOT", "DISK_FULL"],
  ])(
    "with %s at any call makes init fail with %s, and the next init completes the cell",
    (code, expected) => {
      const counting = createFaultyDisk(systemDisk);
      initCell(createSimulatedMachine({ disk: counting, startMs: START_MS }), config, MISSION);
      const calls = counting.calls.length;
      expect(calls).toBeGreaterThan(20);
      for (let at = 1; at <= calls; at += 1) {
        rmSync(config.missions_root, { recursive: true, force: true });
        const disk = createFaultyDisk(systemDisk, { code, at });
        try {
          initCell(createSimulatedMachine({ disk, startMs: START_MS }), config, MISSION);
        } catch (error) {
          expect(error, `call ${at}`).toMatchObject({ code: expected });
        }
        initCell(machine, config, MISSION);
        expect(scanCells(config, START_MS / 1000).summary.healthy, `call ${at}`).toBe(1);
        for (const path of ["meta/mission.json", "config/cell.json", "state/heartbeat.json"])
          JSON.parse(read(path));
      }
    },
  );
});

it("a missions root that is a file is an error", () => {
  writeFileSync(config.missions_root, "");
  expect(() => initCell(machine, config, MISSION)).toThrow(expect.objectContaining({ code: "CELL_DAMAGED" }));
});
