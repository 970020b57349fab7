// Directories that are protected without an agent, and their settings while the pit runs.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
let directory: string;

beforeEach(async () => {
  world = createPitWorld();
  configure({});
  directory = join(world.directory, "app");
  mkdirSync(directory);
  writeFileSync(join(directory, "before"), "1\n");
  expect((await world.call(["protect", directory])).exit).toBe(0);
});
afterEach(() => world.close());

function configure(document: object): void {
  const file = join(world.home, "config.json");
  writeFileSync(file, JSON.stringify({ pit: { quiet_seconds: 0.2 }, ...document }));
}

const status = async (mission = "app") =>
  JSON.parse((await world.call(["status", mission, "--json"])).stdout).missions.find(
    ({ mission_id }: { mission_id: string }) => mission_id === mission,
  );
const isSaved = async (path: string) => (await world.call(["ls", "app", `worktree/${path}`])).exit === 0;
const live = () => world.checkpoints("app").filter(({ reason }) => reason === "live");
/** The cell of MISSION, last column of the header given. */
const row = (mission: string) =>
  world
    .run(["status"])
    .stdout.split("\n")
    .find((line) => line.startsWith(`${mission} `))!;

describe("a directory without an agent", () => {
  it("is active when a file in it is overwritten, which changes no directory", async () => {
    await world.openPit();
    await world.until("protection", async () => (await status()).live !== null);
    const { last_activity_ms: before } = await status();
    writeFileSync(join(directory, "before"), "2\n");
    await world.until("the point", () => live().length > 0);
    const { last_activity_ms: activeMs, last_checkpoint: checkpoint } = await status();
    expect(checkpoint.reason).toBe("live");
    expect(activeMs).toBeGreaterThan(before);
    expect(activeMs).toBeGreaterThanOrEqual(checkpoint.created_ms);
  });

  it("has its own settings: live off ends its live points and says so, live SECONDS turns them on again", async () => {
    const off = await world.call(["set", "app", "live", "off"]);
    expect(off).toEqual({
      exit: 0,
      stdout: "protect_within_seconds = null\nenvironment: not kept\n",
      stderr: "saved: the settings apply now\n",
    });
    await world.openPit();
    expect(await status()).toMatchObject({
      state: "none",
      agent: null,
      command: null,
      wish: null,
      live: null,
    });
    expect(row("app")).toMatch(/ off /);
    writeFileSync(join(directory, "unsaved"), "");
    await world.call(["set", "app", "live", "7"]);
    await world.until("the point", () => isSaved("unsaved"));
    await world.until("nothing unsaved", async () => (await status()).live?.unsaved_since_ms === null);
    expect(row("app")).toMatch(/ none /);
    await world.call(["set", "app", "live", "off"]);
    await world.until("the end of protection", async () => (await status()).live === null);
    await world.call(["set", "app", "--unset", "live"]);
    await world.until("protection", async () => (await status()).live !== null);
    expect((await world.call(["set", "app"])).stdout).toBe("environment: not kept\n");
  });

  it("has no command, environment, or past", async () => {
    world.write("keys", "A=1\n");
    for (const change of [["resume_command=x {session}"], ["--env-file", world.path("keys")]]) {
      const { exit, stderr } = await world.call(["set", "app", ...change]);
      expect([exit, stderr]).toEqual([6, expect.stringContaining("app has never had an agent")]);
    }
    await world.call(["set", "app", "live", "9"]);
    expect((await world.call(["stop", "app"])).stderr).toContain("app has never had an agent");
    expect((await world.call(["revive", "app"])).stderr).toContain("app has never had an agent");
    expect((await world.call(["why", "app"])).stdout).toContain("app has never had an agent");
    expect((await world.call(["set", "nobody", "live", "9"])).stderr).toContain("there is no mission nobody");
  });

  it("passes its settings on to an agent that is started in it", async () => {
    await world.call(["set", "app", "live", "9", "revive=no"]);
    expect(world.run(["run", "app", "--", "true"]).exit).toBe(0);
    expect((await world.call(["set", "app"])).stdout).toContain("protect_within_seconds = 9\nrevive = no\n");
    expect(await status()).toMatchObject({ state: "finished", agent: "true" });
  });
});

describe("a running pit", () => {
  it("uses a changed exclude setting for the next point, which includes what was excluded before", async () => {
    configure({ snapshot: { exclude: ["/worktree/tmp"] } });
    const pit = await world.openPit();
    let log = "";
    pit.stderr!.on("data", (chunk) => {
      log += chunk;
    });
    mkdirSync(join(directory, "tmp"));
    writeFileSync(join(directory, "tmp/x"), "");
    writeFileSync(join(directory, "one"), "");
    await world.until("a point", () => isSaved("one"));
    expect(await isSaved("tmp/x")).toBe(false);
    configure({ snapshot: { exclude: ["/worktree/other"] } });
    await world.until("the new settings", () => log.includes("settings have changed"));
    mkdirSync(join(directory, "other"));
    writeFileSync(join(directory, "other/y"), "");
    writeFileSync(join(directory, "two"), "");
    await world.until("the next point", () => isSaved("two"));
    expect([await isSaved("tmp/x"), await isSaved("other/y")]).toEqual([true, false]);
    // The pit again acts for commands that read the same file.
    const { caller } = JSON.parse(readFileSync(join(world.home, "run/http.json"), "utf8"));
    configure({ snapshot: { exclude: 7 } });
    await world.until("the complaint", () => log.includes("keeps its previous settings"));
    writeFileSync(join(directory, "three"), "");
    configure({ snapshot: { exclude: ["/worktree/other"] } });
    await world.until("a point with the previous settings", () => isSaved("three"));
    expect(await isSaved("other/y")).toBe(false);
    expect(JSON.parse(readFileSync(join(world.home, "run/http.json"), "utf8")).caller).toBe(caller);
  });

  it("reports nothing when a directory was released after its last point, although it has changed", async () => {
    await world.openPit();
    await world.until("protection", async () => (await status()).live !== null);
    expect((await world.call(["protect", directory])).stderr).not.toContain("no pit is running");
    expect((await world.call(["release", directory])).exit).toBe(0);
    writeFileSync(join(directory, "later"), "");
    await world.until("the end of protection", async () => (await status()).live === null);
    const { stdout } = await world.call(["events", "app", "--json"]);
    expect(stdout).toContain('"kind":"init"');
    expect(stdout).not.toContain('"kind":"alert"');
  });

  it("uses limits that were changed in the config", async () => {
    configure({ pit: { protect_within_seconds: null } });
    await world.openPit();
    writeFileSync(join(directory, "one"), "");
    configure({});
    await world.until("a point", () => isSaved("one"));
    expect(live().length).toBeGreaterThan(0);
  });
});

describe("a copy of a protected directory in which no agent was started", () => {
  it.each([
    ["fork", (name: string) => world.run(["fork", "app", name])],
    [
      "import",
      (name: string) => {
        const archive = join(world.directory, "app.tar.gz");
        expect(world.run(["export", "app", "-o", archive]).exit).toBe(0);
        return world.run(["import", archive, "--mission", name]);
      },
    ],
  ])("by %s is not reported as silent", async (_, copy) => {
    expect(copy("copy").exit).toBe(0);
    const file = join(world.missions, "copy/state/heartbeat.json");
    const heartbeat = JSON.parse(readFileSync(file, "utf8"));
    expect(heartbeat).toMatchObject({ mission_id: "copy", status: "bootstrapped" });
    expect(Date.now() / 1000 - heartbeat.timestamp).toBeLessThan(600);
    writeFileSync(file, JSON.stringify({ ...heartbeat, timestamp: heartbeat.timestamp - 7200 }));
    const { cells } = JSON.parse((await world.call(["scan", "--json"])).stdout);
    expect(cells.find(({ mission_id: id }: { mission_id: string }) => id === "copy")).toMatchObject({
      status: "inactive",
      reason: "it is a copy in which no agent has been started",
    });
    expect(row("copy")).not.toContain("no heartbeat");
    // Something sends heartbeats, then stops.
    writeFileSync(file, JSON.stringify({ ...heartbeat, status: "alive", timestamp: 1 }));
    expect(row("copy")).toContain("no heartbeat");
    rmSync(join(world.missions, "copy"), { recursive: true });
  });
});
