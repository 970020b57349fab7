// docs/cells.md, "Scan": what is scanned, in which order, what the report contains, and that one bad cell never stops the rest.
import { execFileSync } from "node:child_process";
import fs, {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import { type Config, resolveConfig } from "./config.ts";
import { initCell } from "./init.ts";
import { parseMissionId } from "./mission-id.ts";
import { scanCells } from "./scan.ts";

const START_MS = 1_800_000_000_000;
const NOW = START_MS / 1000;

let home: string;
let config: Config;
const machine = createSimulatedMachine({ disk: systemDisk, startMs: START_MS });
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-scan-"));
  config = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {}).config;
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const cell = (name: string): string => initCell(machine, config, parseMissionId(name)).paths.root;
const scan = (now = NOW) => scanCells(config, now);
const statuses = (now = NOW) =>
  Object.fromEntries(scan(now).cells.map(({ mission_id, status }) => [mission_id, status]));

describe("the report", () => {
  it("has missions_root, heartbeat_job, heartbeat_interval_seconds, summary and cells", () => {
    const root = cell("m1");
    expect(scan(NOW + 7.9)).toEqual({
      missions_root: config.missions_root,
      heartbeat_job: "lazarus_pit",
      heartbeat_interval_seconds: 60,
      summary: { total_cells: 1, healthy: 1, stale: 0, inactive: 0, incomplete: 0, uninitialized: 0 },
      cells: [
        {
          mission_id: "m1",
          root,
          status: "healthy",
          age_seconds: 7,
          last_timestamp: NOW,
          missing_paths: [],
          skew_seconds: null,
          reason: null,
        },
      ],
      skipped: [],
    });
  });

  it("counts every directory below the root, in name order", () => {
    for (const name of ["b", "a", "B", "a-1", "10", "9"]) cell(name);
    mkdirSync(join(config.missions_root, "not a mission id"));
    expect(scan().cells.map(({ mission_id }) => mission_id)).toEqual([
      "10",
      "9",
      "B",
      "a",
      "a-1",
      "b",
      "not a mission id",
    ]);
  });

  it("skips files and Lazarus's own temporary directories", () => {
    cell("m1");
    writeFileSync(join(config.missions_root, "file"), "");
    symlinkSync("file", join(config.missions_root, "link-to-file"));
    mkdirSync(join(config.missions_root, ".lazarus-staging"));
    expect(Object.keys(statuses())).toEqual(["m1"]);
    expect(scan().skipped).toEqual([]);
  });

  it("of a missing root is empty, not an error", () => {
    expect(scan()).toMatchObject({ summary: { total_cells: 0 }, cells: [], skipped: [] });
  });

  it("of a root that is a file is an error", () => {
    writeFileSync(config.missions_root, "");
    expect(scan).toThrow(expect.objectContaining({ code: "NOT_FOUND" }));
  });
});

describe("a cell is", () => {
  it("incomplete if any required sub-directory is missing, and says which", () => {
    const root = cell("m1");
    rmSync(join(root, "logs"), { recursive: true });
    rmSync(join(root, "artifacts"), { recursive: true });
    writeFileSync(join(root, "artifacts"), "not a directory");
    expect(scan().cells[0]).toMatchObject({
      status: "incomplete",
      missing_paths: ["logs", "artifacts"],
      last_timestamp: NOW,
    });
  });

  it.each<[string, (file: string) => void, string]>([
    ["absent", (file) => rmSync(file), "no such file"],
    ["not JSON", (file) => writeFileSync(file, "{"), "not JSON"],
    ["empty", (file) => writeFileSync(file, ""), "not JSON"],
    ["a list", (file) => writeFileSync(file, "[]"), "JSON, but not an object"],
    ["without a timestamp", (file) => writeFileSync(file, "{}"), "has no timestamp"],
    ["with a timestamp of text", (file) => writeFileSync(file, '{"timestamp":"now"}'), "has no timestamp"],
    [
      "with a timestamp too large for a number",
      (file) => writeFileSync(file, '{"timestamp":1e999}'),
      "has no timestamp",
    ],
    ["binary", (file) => writeFileSync(file, Buffer.from([0, 255, 1])), "not JSON"],
    [
      "a directory",
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
      "a directory, not a file",
    ],
    ["2 GB", (file) => truncateSync(file, 2 ** 31), "2147483648 bytes, more than the 65536 allowed"],
    [
      "a FIFO",
      (file) => {
        rmSync(file);
        execFileSync("mkfifo", [file]);
      },
      "not a regular file",
    ],
    [
      "a link out of the cell",
      (file) => {
        rmSync(file);
        writeFileSync(join(home, "fresh.json"), `{"timestamp":${NOW}}`);
        symlinkSync(join(home, "fresh.json"), file);
      },
      "a symbolic link, not a file",
    ],
    [
      "behind a link out of the cell",
      (file) => {
        mkdirSync(join(home, "outside"));
        writeFileSync(join(home, "outside/heartbeat.json"), `{"timestamp":${NOW}}`);
        rmSync(join(file, ".."), { recursive: true });
        symlinkSync(join(home, "outside"), join(file, ".."));
      },
      "state is a link that leads outside, to ",
    ],
  ])("uninitialized if the heartbeat file is %s, and the rest is scanned", (_, damage, reason) => {
    damage(join(cell("bad"), "state/heartbeat.json"));
    cell("good");
    const { cells, summary } = scan();
    expect(cells[0]).toMatchObject({ status: "uninitialized", age_seconds: null, last_timestamp: null });
    expect(cells[0]?.reason?.startsWith(`heartbeat: ${reason}`)).toBe(true);
    expect(summary).toMatchObject({ total_cells: 2, healthy: 1, uninitialized: 1 });
  });

  it("uninitialized if a directory on the path to its heartbeat leads outside", () => {
    config = { ...config, heartbeat_file: "state/deep/heartbeat.json" };
    const root = cell("m1");
    expect(statuses()).toEqual({ m1: "healthy" });
    rmSync(join(root, "state/deep"), { recursive: true });
    mkdirSync(join(home, "outside"));
    writeFileSync(join(home, "outside/heartbeat.json"), `{"timestamp":${NOW}}`);
    symlinkSync(join(home, "outside"), join(root, "state/deep"));
    expect(statuses()).toEqual({ m1: "uninitialized" });
  });

  it("stale if age_seconds > stale_after_seconds, else healthy", () => {
    cell("m1");
    expect(statuses(NOW + 180)).toEqual({ m1: "healthy" });
    expect(statuses(NOW + 180.5)).toEqual({ m1: "stale" });
    expect(scan(NOW + 200).cells[0]).toMatchObject({
      age_seconds: 200,
      reason: "no heartbeat for 200 s (limit 180 s)",
    });
  });

  it("healthy and reported with its skew when its heartbeat is in the future", () => {
    cell("m1");
    expect(scan(NOW - 3600).cells[0]).toMatchObject({
      status: "healthy",
      age_seconds: 0,
      skew_seconds: 3600,
    });
  });
});

describe("one bad entry never stops the scan of the rest:", () => {
  it("links that lead outside, dangle or are circular are listed with their reason, not counted", () => {
    cell("good");
    symlinkSync(home, join(config.missions_root, "out"));
    symlinkSync("nothing", join(config.missions_root, "nowhere"));
    symlinkSync("circle", join(config.missions_root, "circle"));
    expect(scan().summary).toMatchObject({ total_cells: 1, healthy: 1 });
    expect(scan().skipped).toEqual([
      { name: "circle", reason: "a circular link" },
      { name: "nowhere", reason: "a dangling link" },
      { name: "out", reason: `a link that leads outside, to ${fs.realpathSync(home)}` },
    ]);
  });

  it("a link to another cell is a cell", () => {
    cell("real");
    symlinkSync("real", join(config.missions_root, "alias"));
    expect(statuses()).toEqual({ alias: "healthy", real: "healthy" });
  });

  it("a cell that disappears during the scan is listed as skipped", () => {
    for (const name of ["a", "b", "c"]) cell(name);
    const original = fs.readdirSync;
    // The root has been listed; the next cell is renamed away before it is read.
    const spy = ((path: string, ...rest: unknown[]) => {
      if (path.endsWith("/a")) renameSync(join(config.missions_root, "b"), join(home, "gone"));
      return (original as (...args: unknown[]) => unknown)(path, ...rest);
    }) as typeof fs.readdirSync;
    const report = withReaddir(spy, scan);
    expect(report.cells.map(({ mission_id }) => mission_id)).toEqual(["a", "c"]);
    expect(report.skipped).toEqual([{ name: "b", reason: "disappeared during the scan" }]);
  });

  it("a name with terminal escapes, and one that is not UTF-8, are reported unchanged", () => {
    mkdirSync(join(config.missions_root), { recursive: true });
    mkdirSync(join(config.missions_root, "\x1b[2Jx"));
    mkdirSync(Buffer.concat([Buffer.from(`${config.missions_root}/`), Buffer.from([0xff, 0x61])]));
    cell("good");
    const { cells, skipped } = scan();
    expect(cells.map(({ mission_id }) => mission_id)).toEqual(["\x1b[2Jx", "good"]);
    expect(skipped).toHaveLength(1);
  });

  it("any heartbeat content gives exactly one status per cell", () => {
    const file = join(cell("m1"), "state/heartbeat.json");
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.uint8Array({ maxLength: 40 })), (content) => {
        writeFileSync(file, content);
        const { summary } = scan();
        return summary.total_cells === 1 && summary.healthy + summary.stale + summary.uninitialized === 1;
      }),
    );
  });
});

/** Lets a test act between two reads of the scan. */
function withReaddir<T>(replacement: typeof fs.readdirSync, use: () => T): T {
  const original = fs.readdirSync;
  fs.readdirSync = replacement;
  syncBuiltinESMExports();
  try {
    return use();
  } finally {
    fs.readdirSync = original;
    syncBuiltinESMExports();
  }
}
