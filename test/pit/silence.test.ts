// Status of cells: an alert and a checkpoint when a cell without an agent goes silent, `status` in
// mission.json, the lines of daemon.log, and a scan that agrees with `status`.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const inCell = (...parts: string[]) => join(world.missions, "m1", ...parts);
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const configure = (document: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify(document));
const status = () => readJson(inCell("meta", "mission.json")).status;

/** The last heartbeat was this long ago. */
function age(seconds: number): void {
  const path = inCell("state", "heartbeat.json");
  writeFileSync(path, JSON.stringify({ ...readJson(path), timestamp: Date.now() / 1000 - seconds }));
}

describe("a cell that only sends heartbeats", () => {
  it("is saved and reported once when it goes silent, even across restarts of the pit", async () => {
    const alerts = join(world.directory, "alerts");
    mkdirSync(alerts);
    configure({
      heartbeat_interval_seconds: 0.1,
      stale_after_seconds: 60,
      alerts: { command: `cat > ${alerts}/$$` },
    });
    await world.call(["init", "m1"]);
    age(2 * 3600);
    const first = await world.openPit();
    // A pit that is killed while it sends may send the same alert again, with the same id.
    const sent = () =>
      new Map(
        readdirSync(alerts)
          .map((name) => JSON.parse(readFileSync(join(alerts, name), "utf8")))
          .sort((a, b) => a.time_ms - b.time_ms)
          .map(({ id, text }) => [id, text]),
      );
    await world.until("the alert", () => sent().size === 1);
    await world.until("the checkpoint", () => world.checkpoints("m1").length === 1);
    expect(world.checkpoints("m1")).toMatchObject([{ reason: "crash" }]);
    expect((await world.call(["status"])).stdout).toMatch(/m1 .*no heartbeat/);
    first.kill("SIGKILL");
    await world.until("its end", () => first.signalCode !== null);
    await world.openPit();
    age(5 * 3600);
    await world.until("the second silence", () => sent().size === 2);
    expect([...sent().values()]).toEqual([
      expect.stringContaining("m1: the cell has gone silent: no heartbeat for 2 h"),
      expect.stringContaining("no heartbeat for 5 h"),
    ]);
  });
});

describe("mission.json and daemon.log", () => {
  it("follow the lives of the agent", async () => {
    await world.call(["init", "m1"]);
    expect(status()).toBe("bootstrapped");
    world.run(["run", "m1", "--", "sh", "-c", 'cat "$LAZARUS_CELL/meta/mission.json" > during; exit 0']);
    expect(readJson(inCell("worktree", "during")).status).toBe("running");
    expect(status()).toBe("finished");
    world.run(["run", "m1", "--", "sh", "-c", "exit 3"]);
    expect(status()).toBe("crashed");
    await world.call(["run", "m1", "-d", "--replace", "--", "sleep", "600"]);
    await world.call(["stop", "m1", "--grace", "0"]);
    expect(status()).toBe("stopped");
    const lines = readFileSync(inCell("logs", "daemon.log"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => line.replace(/^\S+Z /, ""))).toEqual([
      "life 1 started (start)",
      "life 1 ended: exited 0",
      "life 2 started (start)",
      "life 2 ended: exited with code 3",
      "life 3 started (start)",
      expect.stringMatching(/^life 3 ended: killed by SIG/),
    ]);
  });

  it("keep what other tools added, and never follow a link out of the cell", async () => {
    await world.call(["init", "m1"]);
    writeFileSync(inCell("meta", "mission.json"), JSON.stringify({ status: "bootstrapped", owner: "ops" }));
    const outside = world.write("outside/mission.json", '{"status":"theirs"}');
    world.run(["run", "m1", "--", "true"]);
    expect(readJson(inCell("meta", "mission.json"))).toEqual({ status: "finished", owner: "ops" });
    world.run([
      "run",
      "m1",
      "--",
      "sh",
      "-c",
      `rm -r "$LAZARUS_CELL/meta"; ln -s ${join(world.directory, "outside")} "$LAZARUS_CELL/meta"`,
    ]);
    expect(readFileSync(outside, "utf8")).toBe('{"status":"theirs"}');
  });
});

describe("a finished mission", () => {
  it("is inactive in a scan, not stale, and passes scan --check", async () => {
    world.run(["run", "m1", "--", "true"]);
    age(1e6);
    const report = JSON.parse((await world.call(["scan", "--json"])).stdout);
    expect(report.summary).toMatchObject({ total_cells: 1, stale: 0, inactive: 1 });
    expect(report.cells).toMatchObject([{ status: "inactive", reason: "its agent has finished" }]);
    expect((await world.call(["scan", "--check"])).exit).toBe(0);
    expect((await world.call(["status", "--json"])).stdout).toContain('"state":"finished"');
  });

  it("is stale again for a crashed agent that has not been handled", async () => {
    world.run(["run", "m1", "--", "sh", "-c", "exit 3"]);
    age(1e6);
    expect((await world.call(["scan", "--check"])).exit).toBe(3);
    expect(existsSync(inCell("meta", "mission.json"))).toBe(true);
  });
});
