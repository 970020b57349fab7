// The wall between the kernel and what a host plugged in: whatever a port throws, at once or later, or never answers,
// becomes a warning or the run's own error. It never ends the host and never keeps a run from being closed.
import type { Clock } from "../../platform/clock.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunInfo } from "../model/types.ts";
import type { AuditPort, RunEvent, Watch } from "./ports.ts";

/** Calls a listener; what it throws, or rejects with later, is handed to `failed`. */
export function tellHost(listener: () => unknown, failed: (error: unknown) => void): void {
  try {
    Promise.resolve(listener()).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** A watch that is told nothing more once it threw. */
export function guardWatch(watch: Watch, warn: (warning: string) => void): Watch {
  let broken = false;
  const tell = (listener: () => unknown) => {
    if (broken) return;
    tellHost(listener, (error) => {
      if (!broken) warn(`the watchdog threw and is told nothing more: ${thrownText(error)}`);
      broken = true;
    });
  };
  return {
    activity: () => tell(() => watch.activity()),
    stepDone: (iterations) => tell(() => watch.stepDone(iterations)),
    toolStarted: (tool) => tell(() => watch.toolStarted(tool)),
    toolEnded: () => tell(() => watch.toolEnded()),
    stop: () => tell(() => watch.stop()),
  };
}

/** An audit port that nobody has to wait for, until `settle` does. */
export interface GuardedAudit {
  record(info: RunInfo, event: RunEvent): void;
  /** Waits for what was handed over, but no longer than `patienceMs`. */
  settle(clock: Clock, patienceMs: number): Promise<void>;
}

/** Hands events over in order; what is not written becomes a warning. */
export function guardAudit(port: AuditPort | undefined, failed: (warning: string) => void): GuardedAudit {
  const open = new Set<Promise<unknown>>();
  return {
    record(info, event) {
      if (port === undefined) return;
      const entry: Promise<unknown> = Promise.resolve()
        .then(() => port.record(info, event))
        .catch((error: unknown) => failed(`the audit log was not written: ${thrownText(error)}`))
        .finally(() => open.delete(entry));
      open.add(entry);
    },
    async settle(clock, patienceMs) {
      if (open.size === 0) return;
      const written = new AbortController();
      await Promise.race([Promise.all(open), clock.sleep(patienceMs, written.signal)]);
      written.abort();
      if (open.size > 0) failed(`the audit log did not take ${open.size} of its entries in time`);
    },
  };
}
