// Heartbeats over HTTP: durable before the response, fenced at the moment of the write, and every failure is reported.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { recordHeartbeat } from "../../src/http/record-heartbeat.ts";
import { fenceEarlierLives } from "../../src/pit/record/store.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";
import { sendHeartbeats } from "./send-heartbeats.ts";
import { startTestServer, type TestServer } from "./test-server.ts";

const m1 = parseMissionId("m1");

function heartbeatFile(server: TestServer, mission: string): string {
  return join(server.config.missions_root, mission, "state", "heartbeat.json");
}

describe("a heartbeat over HTTP", () => {
  it("fails only for the mission that cannot be written, and works for the others", async () => {
    await using server = await startTestServer({ missions: ["m1", "m2"] });
    const beat = async (mission: string) => {
      const response = await server.ask(`/v1/missions/${mission}/heartbeat`, {
        method: "POST",
        body: '{"durable":true}',
      });
      return [response.status, ((await response.json()) as { code?: string }).code];
    };
    expect(await Promise.all([beat("m1"), beat("m2")])).toEqual([
      [202, undefined],
      [202, undefined],
    ]);
    rmSync(join(server.config.missions_root, "m1", "state"), { recursive: true });
    expect(await beat("m1")).toEqual([404, "MISSION_UNKNOWN"]);
    expect(await beat("m2")).toEqual([202, undefined]);
  });

  it("keeps the previous status if it has none", async () => {
    await using server = await startTestServer();
    recordHeartbeat(systemMachine, server.config, m1, { status: "busy" });
    recordHeartbeat(systemMachine, server.config, m1, {});
    expect(JSON.parse(readFileSync(heartbeatFile(server, "m1"), "utf8")).status).toBe("busy");
  });

  it("reports a failed write to its own caller", async () => {
    await using server = await startTestServer();
    const full = new LazarusError("DISK_FULL", "the disk is full");
    const machine: Machine = {
      ...systemMachine,
      disk: {
        ...systemMachine.disk,
        fsync() {
          throw full;
        },
      },
    };
    expect(() => recordHeartbeat(machine, server.config, m1, {})).toThrow(full);
    expect(recordHeartbeat(systemMachine, server.config, m1, {})).toMatchObject({ durable: true });
  });

  it("of an earlier life is refused", async () => {
    await using server = await startTestServer();
    fenceEarlierLives(systemMachine, server.config, m1);
    fenceEarlierLives(systemMachine, server.config, m1);
    const beat = (epoch: number) =>
      server.ask("/v1/missions/m1/heartbeat", { method: "POST", body: JSON.stringify({ epoch }) });
    expect((await beat(2)).status).toBe(202);
    expect(await (await beat(1)).json()).toMatchObject({ code: "EPOCH_FENCED" });
  });

  it("is answered 300 times over 64 connections", async () => {
    const names = Array.from({ length: 50 }, (_, n) => `m${n}`);
    await using server = await startTestServer({ missions: names });
    const { url, token } = server;
    const times = await sendHeartbeats({ url, token, missions: names, count: 300, perSecond: 1000 });
    expect(times).toHaveLength(300);
  });
});
