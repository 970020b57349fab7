// Writes heartbeats on a thread of its own: durable writes are synchronous and would hold up every request and the
// watching of agents. Gets batches of orders, answers with what went wrong.
import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "../cell/config.ts";
import { beat } from "../cell/heartbeat.ts";
import { asLazarusError } from "../platform/errors.ts";
import { type Machine, systemMachine } from "../platform/machine.ts";
import type { HeartbeatOrder } from "./heartbeat-desk.ts";

export type WrittenAnswer = (ReturnType<ReturnType<typeof asLazarusError>["toJSON"]> | null)[];

const config: Config = workerData.config;

parentPort?.on("message", (orders: readonly HeartbeatOrder[]) => {
  parentPort?.postMessage(orders.map(write) satisfies WrittenAnswer);
});

function write({ mission, status, atMs }: HeartbeatOrder): WrittenAnswer[number] {
  // The file says when the heartbeat arrived, not when the disk had time for it.
  const machine: Machine = { ...systemMachine, clock: { ...systemMachine.clock, nowMs: () => atMs } };
  try {
    beat(machine, config, mission, status);
    return null;
  } catch (error) {
    return asLazarusError(error, `writing the heartbeat of ${mission}`, config.missions_root).toJSON();
  }
}
