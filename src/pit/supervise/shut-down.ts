// The end of a pit: saves what running agents have done so far. The agents keep running under their keepers.
import { describeError } from "../describe.ts";
import { readRecord } from "../record/store.ts";
import { beat, type Supervisor } from "./supervisor.ts";

const SHUTDOWN_MS = 60_000;

/** Waits for running tasks, then takes a checkpoint of every running agent's cell. */
export async function shutDown(supervisor: Supervisor): Promise<void> {
  const { context, watchList, queue, live } = supervisor;
  const { clock } = context.machine;
  supervisor.stopping = true;
  const deadlineMs = clock.monotonicMs() + SHUTDOWN_MS;
  const idle = new AbortController();
  await Promise.race([queue.idle(), clock.sleep(SHUTDOWN_MS, idle.signal)]);
  idle.abort();
  for (const { mission } of [...watchList.all()]) {
    try {
      const record = readRecord(context.config, mission);
      if (record === undefined || !context.settings(record).checkpointAtShutdown) continue;
      if (clock.monotonicMs() > deadlineMs)
        context.log(`${mission}: no time left for the shutdown checkpoint`);
      else await live.checkpoint(mission, { reason: "shutdown", message: null, agent: record.agent });
    } catch (error) {
      context.log(`${mission}: shutdown checkpoint failed: ${describeError(error)}`);
    }
  }
  beat(context, "stopped");
  const { size } = watchList;
  context.log(`pit stopped; ${size} ${size === 1 ? "agent keeps" : "agents keep"} running`);
}
