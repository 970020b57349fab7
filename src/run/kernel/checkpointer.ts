// The per-run checkpointer: decides when a save is due, writes only what is new, keeps the lease alive, and ends the
// record. Saves are strictly one after another. The throttle's clock moves only after a save succeeded, and what was
// held back goes out with the next save or at the end.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import type { Lease } from "../model/types.ts";
import type { RunChange, RunClosing, RunStore } from "../store/store.ts";
import type { CheckpointerFactory, RunCheckpointer } from "./ports.ts";
import type { RunState } from "./state.ts";
import { RunStopped } from "./stop.ts";

/** How often to save, and what to do when that is impossible. */
export interface CheckpointerOptions {
  readonly machine?: Machine;
  /** Least time between saves that no effect depends on; 0 saves every step. */
  readonly throttleMs?: number;
  /** Refuse to run what cannot be made durable. */
  readonly required?: boolean;
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

/** Makes runs durable in `store`. */
export function createCheckpointer(store: RunStore, options: CheckpointerOptions = {}): CheckpointerFactory {
  const { throttleMs = 0 } = options;
  if (!(throttleMs >= 0)) {
    throw new LazarusError("USAGE", `throttleMs is ${throttleMs}`, {
      hint: "use milliseconds from 0 up; 0 saves every step",
    });
  }
  return {
    required: options.required ?? false,
    async begin(info, state) {
      const lease = await store.begin(info, state.transcript);
      crashPoint("run.begin.recorded");
      const stored = { messages: state.transcript.length, phases: 0, redactions: lease.redactions };
      return openCheckpointer(store, lease, stored, options);
    },
    async resume({ lease, record }) {
      const { messageCount: messages, redactions } = record.head;
      return openCheckpointer(store, lease, { messages, phases: record.phases.length, redactions }, options);
    },
  };
}

function openCheckpointer(
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

  /** One write at a time: a save sees what the one before it stored. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = queue.then(work, work);
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
  const hasNews = (state: RunState) =>
    state.transcript.length > messages || state.phases.length > phases || state.dirtyEffects.size > 0;
  const loseLease = (error: unknown): never => {
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
  const keepLease = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await clock.sleep(renewMs, ended.signal);
      // Saves renew it too; only a quiet run needs this.
      if (ended.signal.aborted || clock.monotonicMs() - (lastSavedMs ?? 0) < renewMs) continue;
      try {
        if (!(await inTurn(async () => ended.signal.aborted || store.renew(lease)))) {
          lost.abort(new RunStopped("lease-lost", "another process took this run over"));
          return;
        }
      } catch {
        // The store is away for a moment. The next save will say so, or the lease outlasts it.
      }
    }
  };
  void keepLease();

  return {
    lost: lost.signal,
    get redactions() {
      return redactions;
    },
    save: (state, urgency) => {
      if (!isSaveDue(urgency, throttleMs, clock.monotonicMs(), lastSavedMs)) return Promise.resolve();
      return inTurn(async () => {
        if (!hasNews(state)) return;
        crashPoint("run.save.before");
        await write(state).catch(loseLease);
        crashPoint("run.save.after");
      });
    },
    close: (state, closing) => {
      ended.abort();
      return inTurn(async () => {
        crashPoint("run.close.before");
        await write(state, closing).catch(loseLease);
        crashPoint("run.close.after");
      });
    },
    stop: () => ended.abort(),
  };
}
