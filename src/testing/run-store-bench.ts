// Fixtures of the run store suite: a location that several simulated processes open, and builders for runs, messages and
// effects.
import assert from "node:assert/strict";
import { systemDisk } from "../platform/disk.ts";
import type { Effect, Lease, RunInfo, TranscriptEntry } from "../run/model/types.ts";
import type { RunStoreOptions } from "../run/store/run-store.ts";
import type { RunChange, RunStore } from "../run/store/store.ts";
import { createSeededIds } from "./seeded-ids.ts";
import { createSimulatedClock, type SimulatedClock } from "./simulated-clock.ts";
import { createSimulatedProcesses, type SimulatedProcesses } from "./simulated-processes.ts";

export type { Effect, TranscriptEntry } from "../run/model/types.ts";

/** A location for runs that can be opened several times, as by several processes. */
export interface RunStorePlace {
  open(options: RunStoreOptions): Promise<RunStore>;
  dispose(): Promise<void>;
}

/** Declares a test; each test gets its own bench. */
export interface Declare {
  describe(name: string, body: () => void): void;
  test(title: string, body: (bench: Bench) => Promise<void>): void;
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0 };
export const LEASE_MS = 30_000;

/** A store on a simulated machine, and ways to open it again. */
export interface Bench {
  readonly store: RunStore;
  readonly clock: SimulatedClock;
  readonly processes: SimulatedProcesses;
  /** The same location, opened by a process on another host, or by another process of this one. */
  another(where?: "this host"): Promise<RunStore>;
  open(options: RunStoreOptions): Promise<RunStore>;
  dispose(): Promise<void>;
}

export async function createBench(createPlace: () => Promise<RunStorePlace>): Promise<Bench> {
  const place = await createPlace();
  const clock = createSimulatedClock();
  const processes = createSimulatedProcesses();
  const opened: RunStore[] = [];
  const machineOf = (own: SimulatedProcesses, seed: number) => ({
    clock,
    processes: own,
    ids: createSeededIds(seed),
    disk: systemDisk,
  });
  const open = async (options: RunStoreOptions) => {
    const machine = machineOf(processes, opened.length + 1);
    const store = await place.open({ machine, leaseMs: LEASE_MS, ...options });
    opened.push(store);
    return store;
  };
  const store = await open({});
  return {
    store,
    clock,
    processes,
    open,
    another: (where) => {
      const selfPid = 5000 + opened.length;
      const seen = {
        ...processes,
        self: () => processes.identify(selfPid) ?? processes.start(selfPid),
        hostName: () => (where === "this host" ? processes.hostName() : `host-${selfPid}`),
      };
      return open({ machine: machineOf(seen, 100 + opened.length) });
    },
    async dispose() {
      for (const each of opened) await each[Symbol.asyncDispose]();
      await place.dispose();
    },
  };
}

export async function longRun(store: RunStore, runId: string, steps: number): Promise<Lease> {
  const lease = await store.begin(info(runId), [user("go")]);
  for (let step = 1; step <= steps; step += 1)
    await store.save(lease, change(step, [assistant(step, `s${step}`)]));
  return lease;
}

export function info(runId: string): RunInfo {
  return {
    ...{ runId, agentId: "agent", agentName: "Agent", callerId: null, channelId: null, guildId: null },
    ...{
      parentRunId: null,
      prompt: "p",
      modelTier: null,
      inputs: { a: [1] },
      startedAtMs: 1,
      maxIterations: 9,
    },
  };
}

export function user(content: string): TranscriptEntry {
  return { step: 0, phase: 0, message: { role: "user", content } };
}

export function assistant(step: number, content: string): TranscriptEntry {
  return { step, phase: 0, message: { role: "assistant", content } };
}

export function text(entry: TranscriptEntry): unknown {
  return entry.message.content;
}

export function change(
  fromCount: number,
  messages: TranscriptEntry[],
  more: Partial<RunChange> = {},
): RunChange {
  const step = messages.at(-1)?.step ?? fromCount;
  return { fromCount, messages, step, phase: 0, usage: NO_USAGE, ...more };
}

export function effect(runId: string, step: number, call: number): Effect {
  return {
    ...{
      id: `${runId}.${step}.${call}`,
      runId,
      step,
      call,
      callId: `call-${call}`,
      tool: "send",
      class: "once",
    },
    ...{ state: "prepared", attempts: 0, preparedAtMs: 1, startedAtMs: null, endedAtMs: null },
    ...{ output: null, error: null, inputRedacted: false },
  };
}

export async function rejects(promise: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.equal((error as { code?: string }).code, code, String(error));
    return true;
  });
}
