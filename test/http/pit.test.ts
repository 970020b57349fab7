// The real `lazarus pit` and its API: found through http.json, serving both addresses, sending an alert, and removed on exit.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, LAUNCHER, type World } from "../cli/hermetic.ts";
import { askRaw } from "./test-server.ts";

describe("lazarus pit", () => {
  let world: World;
  let pit: ReturnType<typeof spawn>;
  let logged = "";
  let ended: Promise<number | null>;
  beforeAll(() => {
    world = createWorld();
    const alerts = { on: ["death"], command: `cat >>${world.path("alerts")}` };
    world.write("home/config.json", JSON.stringify({ pit: { http_port: 0 }, alerts }));
    world.run(["init", "m1"]);
    pit = spawn(process.execPath, [LAUNCHER, "pit"], {
      env: { ...world.env },
      cwd: world.cwd,
      stdio: ["ignore", "ignore", "pipe"],
    });
    pit.stderr!.on("data", (chunk) => {
      logged += chunk;
    });
    ended = new Promise((resolve) => pit.on("exit", resolve));
  });
  afterAll(() => {
    pit.kill("SIGKILL");
    world[Symbol.dispose]();
  });
  const addressFile = () => join(world.home, "run", "http.json");

  it("serves its API, reports a death, and cleans up on exit", async () => {
    await expect.poll(() => existsSync(addressFile()), { timeout: 45_000 }).toBe(true);
    const { url, socket } = JSON.parse(readFileSync(addressFile(), "utf8"));
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/v1/missions`)).status).toBe(401);
    const beat = await askRaw({
      socketPath: socket,
      path: "/v1/missions/m1/heartbeat",
      method: "POST",
      headers: { host: "localhost" },
      body: '{"status":"over HTTP","durable":true}',
    });
    expect([beat.status, JSON.parse(beat.body).durable]).toEqual([202, true]);
    expect(world.read("home/missions/m1/state/heartbeat.json")).toContain("over HTTP");

    world.run(["run", "m1", "--detach", "--revive", "no", "--", "sh", "-c", "exit 3"]);
    await expect.poll(() => existsSync(world.path("alerts")), { timeout: 45_000 }).toBe(true);
    await expect.poll(() => world.read("alerts").endsWith("}"), { timeout: 45_000 }).toBe(true);
    expect(JSON.parse(world.read("alerts"))).toMatchObject({
      mission: "m1",
      kind: "death",
      data: { exit_code: 3 },
    });

    pit.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(existsSync(addressFile())).toBe(false);
    expect(existsSync(socket)).toBe(false);
    expect(logged).toContain(`HTTP API listening on ${url} and ${socket}`);
  });
});
