// Missions do not wait for each other: agents that ignore SIGTERM, with a long grace period, delay no other death.
import { existsSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRecord, type MissionRecord } from "../../src/pit/record/record.ts";
import { unhandledSinceMs } from "../../src/pit/unhandled.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const health = () =>
  new Promise<Record<string, unknown>>((resolve, reject) => {
    const socketPath = join(world.home, "run", "pit.sock");
    request({ socketPath, path: "/health", headers: { host: "localhost" } }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text)));
    })
      .on("error", reject)
      .end();
  });

it("six stalled agents that ignore SIGTERM delay neither another death nor a stop", async () => {
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: { grace_seconds: 100_000 } }));
  const stalled = ["d1", "d2", "d3", "d4", "d5", "d6"];
  const script = "trap '' TERM; touch ready; while :; do sleep 0.2; done";
  for (const mission of stalled)
    await world.call(["run", mission, "-d", "--stall", "1", "--", "sh", "-c", script]);
  await world.call(["run", "m1", "-d", "--revive", "yes", "--", "sleep", "777"]);
  for (const mission of stalled)
    await world.until("the agent", () => existsSync(join(world.missions, mission, "worktree", "ready")));
  await world.openPit();
  await world.until("six stalls", () => stalled.every((mission) => world.record(mission).stalled !== null));
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await world.until("the revival", () => world.life("m1").epoch === 2 && world.state("m1") === "running");
  expect((await world.call(["stop", "d1", "--grace", "0", "--no-checkpoint"])).exit).toBe(0);
  expect(world.state("d1")).toBe("stopped");
  expect(await health()).toMatchObject({ status: "ok", oldest_unhandled_death_seconds: 0 });
  for (const mission of stalled.slice(1)) expect(world.record(mission).end).toBeNull();
});

it("health counts deaths without a decision, and revivals that are overdue", () => {
  const spec = { mission: "m", agent: "a", command: ["x"], cwd: null, env: {}, revive: null };
  const fresh = createRecord(undefined, { ...spec, substitute: null, stall_seconds: null } as never, 0);
  const life = { epoch: 1, started_ms: 10 };
  const record = (rest: object) => ({ ...fresh, life, ...rest }) as unknown as MissionRecord;
  const end = { epoch: 1, at_ms: 20 };
  const scene = { epoch: 1, checkpoint: "c", error: null };
  const decision = { epoch: 1, action: "revive", decided_ms: 25, at_ms: 30 };
  expect(unhandledSinceMs(record({}), 15, 100)).toBe(15);
  expect(unhandledSinceMs(record({}), undefined, 100)).toBe(10);
  expect(unhandledSinceMs(record({ end }), 15, 100)).toBe(20);
  expect(unhandledSinceMs(record({ end, scene: { ...scene, checkpoint: null, error: "e" } }), 15, 100)).toBe(
    20,
  );
  expect(unhandledSinceMs(record({ end, scene, decision }), 15, 29)).toBeNull();
  expect(unhandledSinceMs(record({ end, scene, decision }), 15, 100)).toBe(30);
  expect(unhandledSinceMs(record({ end, scene, decision, wish: "stopped" }), 15, 100)).toBeNull();
  expect(
    unhandledSinceMs(record({ end, scene, decision: { ...decision, at_ms: null } }), 15, 100),
  ).toBeNull();
});
