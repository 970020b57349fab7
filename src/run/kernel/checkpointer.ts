// The checkpointer of one run: decides when a save is due, writes only what is new, renews the lease, and closes the
// record. Saves never overlap. The throttle's clock advances only after a successful save; what was held back is
// written with the next save or at the end.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { RunStopped } from "../model/stop.ts";
import type { Lease } from "../model/types.ts";
import type { RunChange, RunClosing, RunStore } from "../store/store.ts";
import type { CheckpointOptions } from "./options.ts";
import type { CheckpointerFactory, RunCheckpointer } from "./ports.ts";
import type { RunState } from "./state.ts";

/** How often to save, and on which machine. */
export interface CheckpointerOptions extends CheckpointOptions {
  readonly machine?: Machine;
}

/** Whether a save is due. Pure. `lastSavedMs` is undefined before the first save. */
export function isSaveDue(
  urgency: "now" | "throttled",
  throttleMs: number,
  nowMs: number,
  lastSavedMs: number | undefined,
): boolean {
  return (
    urgency === "now" || throttleMs <= 0 || lastSavedMs === undefined || nowMs - lastSavedMs >= throttleMs
  );
}

/** Records runs in `store`. An executor with a `store` creates one itself; this is for a host that wraps it. */
export function createCheckpointer(store: RunStore, options: CheckpointerOptions = {}): CheckpointerFactory {
  const { throttleMs = 0 } = options;
  if (!(throttleMs >= 0)) {
    throw new LazarusError("USAGE", `throttleMs is ${throttleMs}`, {
      hint: "use 0 or more milliseconds; 0 saves every step",
    });
  }
  return {
    required: options.required ?? false,
    async begin(info, state) {
      const lease = await store.begin(info, state.transcript);
      crashPoint("run.begin.recorded");
      const stored = { messages: state.transcript.length, phases: 0, redactions: lease.redactions };
      return startCheckpointer(store, lease, stored, options);
    },
    async resume({ lease, record }) {
      const { messageCount: messages, redactions } = record.head;
      return startCheckpointer(store, lease, { messages, phases: record.phases.length, redactions }, options);
    },
  };
}

function startCheckpointer(
  store: RunStore,
  lease: Lease,
  stored: { readonly messages: number; readonly phases: number; readonly redactions: number },
  options: CheckpointerOptions,
): RunCheckpointer {
  const { clock } = options.machine ?? systemMachine;
  const throttleMs = options.throttleMs ?? 0;
  const renewMs = Math.max(1, store.leaseMs / 3);
  const lost = new AbortController();
  const ended = new AbortController();
  let { messages, phases, redactions } = stored;
  let lastSavedMs: number | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** Serializes writes: each save starts from what the previous one stored. */
  const enqueue = <T>(write: () => Promise<T>): Promise<T> => {
    const turn = queue.then(write, write);
    queue = turn.catch(() => {});
    return turn;
  };
  const write = async (state: RunState, closing?: RunClosing): Promise<void> => {
    const dirty = [...state.dirtyEffects];
    const effects = dirty.map((id) => state.effects.get(id)!);
    const change: RunChange = {
      fromCount: messages,
      messages: state.transcript.slice(messages),
      step: state.step,
      phase: state.phase,
      effects,
      phases: state.phases.slice(phases),
      usage: state.usage,
    };
    const receipt =
      closing === undefined ? await store.save(lease, change) : await store.close(lease, change, closing);
    messages += change.messages.length;
    phases += change.phases!.length;
    redactions += receipt.redactions;
    for (const [i, id] of dirty.entries()) {
      if (state.effects.get(id) === effects[i]) state.dirtyEffects.delete(id);
    }
    lastSavedMs = clock.monotonicMs();
  };
  const hasChanges = (state: RunState) =>
    state.transcript.length > messages || state.phases.length > phases || state.dirtyEffects.size > 0;
  const stopIfLost = (error: unknown): never => {
    if (error instanceof LazarusError && error.code === "RUN_STALE_LEASE") {
      const stop = new RunStopped(
        "lease-lost",
        "another process took this run over; nothing more is written",
      );
      if (!lost.signal.aborted) lost.abort(stop);
      throw stop;
    }
    throw error;
  };
  const renewLease = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await clock.sleep(renewMs, ended.signal);
      // Every save renews the lease too, so this matters only for a run that is not saving.
      if (ended.signal.aborted || clock.monotonicMs() - (lastSavedMs ?? 0) < renewMs) continue;
      try {
        if (!(await enqueue(async () => ended.signal.aborted || store.renew(lease)))) {
          lost.abort(new RunStopped("lease-lost", "another process took this run over"));
          return;
        }
      } catch {
        // The store is unreachable. Either it comes back before the lease ends, or the next save fails.
      }
    }
  };
  void renewLease();

  return {
    lost: lost.signal,
    get redactions() {
      return redactions;
    },
    save: (state, urgency) => {
      if (!isSaveDue(urgency, throttleMs, clock.monotonicMs(), lastSavedMs)) return Promise.resolve();
      return enqueue(async () => {
        if (!hasChanges(state)) return;
        crashPoint("run.save.before");
        await write(state).catch(stopIfLost);
        crashPoint("run.save.after");
      });
    },
    close: (state, closing) => {
      ended.abort();
      return enqueue(async () => {
        crashPoint("run.close.before");
        await write(state, closing).catch(stopIfLost);
        crashPoint("run.close.after");
      });
    },
    recall: async (effect) => (await store.recall?.(effect)) ?? effect,
    stop: () => ended.abort(),
  };
}
