// The two hands that write heartbeats: a worker thread for the pit, started with the first heartbeat and started again
// when it dies; and the calling thread for gateways that embed the health handler and see few of them.
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import type { Config } from "../cell/config.ts";
import { beat } from "../cell/heartbeat.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { startWorker } from "../platform/worker-module.ts";
import type { WriteHeartbeats } from "./heartbeat-desk.ts";
import type { WrittenAnswer } from "./heartbeat-worker.ts";

export interface WorkerWriter extends AsyncDisposable {
  readonly write: WriteHeartbeats;
}

export function openWorkerWriter(config: Config): WorkerWriter {
  let worker: Worker | undefined;
  return {
    async write(orders) {
      worker ??= startWorker("heartbeat-worker", import.meta.url, { workerData: { config } });
      // The pit may end while its worker rests.
      worker.unref();
      try {
        worker.postMessage(orders);
        worker.ref();
        const [answer] = (await once(worker, "message")) as [WrittenAnswer];
        return answer.map((error) => error ?? undefined).map(revive);
      } catch (error) {
        const dead = worker;
        worker = undefined;
        void dead.terminate();
        const met = asLazarusError(error, "the thread that writes heartbeats", config.missions_root);
        return orders.map(() => met);
      } finally {
        worker?.unref();
      }
    },
    async [Symbol.asyncDispose]() {
      await worker?.terminate();
    },
  };
}

function revive(error: WrittenAnswer[number] | undefined): LazarusError | undefined {
  if (error === undefined || error === null) return undefined;
  return new LazarusError(error.code, error.message, {
    hint: error.hint ?? undefined,
    details: error.details,
  });
}

export function createDirectWriter(machine: Machine, config: Config): WriteHeartbeats {
  return async (orders) =>
    orders.map(({ mission, status, atMs }) => {
      try {
        beat({ ...machine, clock: { ...machine.clock, nowMs: () => atMs } }, config, mission, status);
        return undefined;
      } catch (error) {
        return asLazarusError(error, `writing the heartbeat of ${mission}`, config.missions_root);
      }
    });
}
