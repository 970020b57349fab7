// Heartbeats faster than the disk: one write per mission at a time, the newest wins, no failure is silent.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { COALESCE_MS, type HeartbeatOrder, openHeartbeatDesk } from "../../src/http/heartbeat-desk.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createScene } from "./scene.ts";
import { sendHeartbeats } from "./send-heartbeats.ts";

const m1 = parseMissionId("m1");
const m2 = parseMissionId("m2");

function createDesk(fail: (order: HeartbeatOrder) => LazarusError | undefined = () => undefined) {
  const batches: HeartbeatOrder[][] = [];
  const startedMs: number[] = [];
  const desk = openHeartbeatDesk(systemMachine.clock, async (orders) => {
    startedMs.push(systemMachine.clock.monotonicMs());
    batches.push([...orders]);
    return orders.map(fail);
  });
  return { desk, batches, startedMs };
}

describe("the heartbeat desk", () => {
  it("writes the first at once, and of many that follow only the newest of each mission", async () => {
    const { desk, batches, startedMs } = createDesk();
    const waits = [];
    for (let n = 0; n < 500; n += 1) {
      waits.push(desk.accept({ mission: n % 2 ? m1 : m2, status: n === 10 ? "busy" : undefined, atMs: n }));
      if (n === 0) expect(batches).toHaveLength(1);
    }
    await Promise.all(waits);
    expect(batches.map((batch) => batch.map(({ mission, atMs, status }) => [mission, atMs, status]))).toEqual(
      [
        [["m2", 0, undefined]],
        [
          ["m1", 499, undefined],
          ["m2", 498, "busy"],
        ],
      ],
    );
    expect(startedMs[1]! - startedMs[0]!).toBeGreaterThanOrEqual(COALESCE_MS - 2);
    expect(desk.counts).toEqual({ accepted: 500, written: 3, failed: 0 });
  });

  it("tells those who wait of a failure, and the next caller of the same mission, once", async () => {
    const full = new LazarusError("DISK_FULL", "the disk is full");
    let broken = true;
    const { desk } = createDesk(({ mission }) => (broken && mission === m1 ? full : undefined));
    await expect(desk.accept({ mission: m1, status: undefined, atMs: 1 })).rejects.toBe(full);
    broken = false;
    await desk.accept({ mission: m2, status: undefined, atMs: 2 });
    await expect(desk.accept({ mission: m1, status: undefined, atMs: 3 })).rejects.toBe(full);
    await desk.accept({ mission: m1, status: undefined, atMs: 4 });
    expect(desk.counts.failed).toBe(1);
  });

  it("holds one of a hundred thousand while the disk is slow", async () => {
    const { promise: slow, resolve: go } = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const desk = openHeartbeatDesk(systemMachine.clock, async (orders) => {
      sizes.push(orders.length);
      await slow;
      return orders.map(() => undefined);
    });
    let last: Promise<void> | undefined;
    for (let n = 0; n < 100_000; n += 1) last = desk.accept({ mission: m1, status: undefined, atMs: n });
    go();
    await last;
    expect(sizes).toEqual([1, 1]);
  });

  it("writes what waits before it closes", async () => {
    const { desk, batches } = createDesk();
    void desk.accept({ mission: m1, status: undefined, atMs: 1 });
    void desk.accept({ mission: m1, status: undefined, atMs: 2 });
    await desk[Symbol.asyncDispose]();
    expect(batches.flat().map(({ atMs }) => atMs)).toEqual([1, 2]);
  });
});

describe("the thread that writes them", () => {
  it("writes, names what it cannot write, and is started again when it dies", async () => {
    await using scene = await createScene({ worker: true, missions: ["m1", "m2"] });
    const beat = async (mission: string) => {
      const response = await scene.ask(`/v1/missions/${mission}/heartbeat`, {
        method: "POST",
        body: '{"durable":true}',
      });
      return [response.status, ((await response.json()) as { code?: string }).code];
    };
    expect(await Promise.all([beat("m1"), beat("m2")])).toEqual([
      [202, undefined],
      [202, undefined],
    ]);
    rmSync(join(scene.config.missions_root, "m1", "state"), { recursive: true });
    expect(await beat("m1")).toEqual([404, "MISSION_UNKNOWN"]);
    expect(await beat("m2")).toEqual([202, undefined]);
  });

  it("takes 1,000 a second for three seconds", { timeout: 300_000 }, async () => {
    const names = Array.from({ length: 50 }, (_, n) => `m${n}`);
    await using scene = await createScene({ worker: true, missions: names });
    const times = await sendHeartbeats({ url: scene.url, token: scene.token, missions: names, count: 3000 });
    const p = (share: number) => times[Math.floor(times.length * share)]!.toFixed(1);
    process.stderr.write(
      `3,000 heartbeats in 3 s: p50 ${p(0.5)} ms, p99 ${p(0.99)} ms (client in the same process)\n`,
    );
    expect(times).toHaveLength(3000);
    expect(scene.desk.counts.failed).toBe(0);
  });
});
