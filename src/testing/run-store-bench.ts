// Fixtures of the run store suite: a location that several simulated processes open, and owners that write runs.
import assert from "node:assert/strict";
import { systemDisk } from "../platform/disk.ts";
import { type Entry, entryOf } from "../run/log/entry.ts";
import { beginRun, claimRun, type LogWrite, writeRun } from "../run/log/run-log.ts";
import type { EffectState, EndStatus, Lease, RunInfo, TranscriptEntry } from "../run/model/types.ts";
import type { RunStore, RunStoreOptions } from "../run/store/store.ts";
import { createSeededIds } from "./seeded-ids.ts";
import { createSimulatedClock, type SimulatedClock } from "./simulated-clock.ts";
import { createSimulatedProcesses, type SimulatedProcesses } from "./simulated-processes.ts";

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
  let others = 0;
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
      others += 1;
      const selfPid = 5000 + others;
      const seen = {
        ...processes,
        self: () => processes.identify(selfPid) ?? processes.start(selfPid),
        hostName: () => (where === "this host" ? processes.hostName() : `host-${selfPid}`),
      };
      return open({ machine: machineOf(seen, 100 + others) });
    },
    async dispose() {
      for (const each of opened) await each[Symbol.asyncDispose]();
      await place.dispose();
    },
  };
}

/** An owner of a run: writes one change after another, as the engine does. */
export interface Owner {
  readonly lease: Lease;
  redactions: number;
  write(change: Partial<LogWrite>): Promise<void>;
  /** An answer of the model, and how many steps the run has now. */
  answer(step: number, text: string): Promise<void>;
  end(status: EndStatus | "needs-human", more?: Partial<LogWrite>): Promise<void>;
  renew(): Promise<boolean>;
  release(): Promise<void>;
}

/** Begins a run with one message. */
export async function begin(
  store: RunStore,
  runId: string,
  text = "go",
  more: Partial<RunInfo> = {},
): Promise<Owner> {
  const input = { mode: "generate", call: { messages: [{ role: "user", content: text }] }, phase: 0 };
  const all = { ...info(runId), ...more };
  const { agentId, parentRunId } = all;
  const identity = { id: runId, agentId, parentRunId, info: all, messages: 1 };
  const { lease, head } = await beginRun(store.log, identity, [
    entryOf({ step: 0, kind: "input", call: 0 }, { input }),
  ]);
  return ownerOf(store, lease, 0, head.redactions);
}

/** Claims a run; undefined when it is held or has ended. */
export async function claim(store: RunStore, runId: string): Promise<Owner | undefined> {
  const head = await store.log.journal.readHead(runId);
  const lease = head && (await claimRun(store.log, head));
  return lease && ownerOf(store, lease, head.seq, head.redactions);
}

function ownerOf({ log }: RunStore, lease: Lease, from: number, redactions: number): Owner {
  const { runId, epoch } = lease;
  let seq = from;
  const owner: Owner = {
    lease,
    redactions,
    async write(change) {
      owner.redactions += await writeRun(log, lease, {
        entries: [],
        sync: "full",
        ...change,
        seq: change.seq ?? seq + 1,
      });
      seq = change.seq ?? seq + 1;
    },
    answer: (step, text) =>
      owner.write({ entries: [response(step, text)], head: { step, messages: step + 1 } }),
    end: (status, more = {}) => owner.write({ release: true, ...more, head: { ...more.head, status } }),
    renew: () => log.journal.renewLease(runId, epoch, Math.floor(log.machine.clock.nowMs()) + log.leaseMs),
    async release() {
      await log.journal.releaseLease(runId, epoch);
    },
  };
  return owner;
}

/** A run with `steps` answers. */
export async function longRun(store: RunStore, runId: string, steps: number): Promise<Owner> {
  const owner = await begin(store, runId);
  for (let step = 1; step <= steps; step += 1) await owner.answer(step, `s${step}`);
  return owner;
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

/** The answer of a step. */
export function response(step: number, text: string): Entry {
  const result = {
    content: [{ type: "text", text }],
    finishReason: { unified: "stop" },
    usage: {},
    warnings: [],
  };
  return entryOf({ step, kind: "response", call: 0 }, { provider: "p", modelId: "m", result });
}

/** A call of a tool. */
export function effect(step: number, call: number, state: EffectState, value: object = {}): Entry {
  const attempts = state === "prepared" ? 0 : 1;
  const more = { state, attempts, name: "send", class: "once" as const, callId: `call-${call}` };
  return entryOf({ step, kind: "effect", call }, value, more);
}

/** The texts of a run, in order. */
export function text({ message: { content } }: TranscriptEntry): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part ? part.text : "")).join("");
}

/** What a run says, or undefined. */
export async function texts(store: RunStore, runId: string): Promise<string[] | undefined> {
  return (await store.load(runId))?.transcript.map(text);
}

export async function rejects(promise: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.equal((error as { code?: string }).code, code, String(error));
    return true;
  });
}
