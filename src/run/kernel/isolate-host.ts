// Isolates the kernel from the host's ports and listeners: one that throws, rejects or never answers becomes a warning.
// It never crashes the host and never keeps a run from being closed.
import type { Clock } from "../../platform/clock.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunInfo } from "../model/types.ts";
import type { RunEvent, RunPorts, Watch } from "./ports.ts";

/** Calls a listener; passes what it throws or rejects with to `onError`. */
export function callListener(listener: () => unknown, onError: (error: unknown) => void): void {
  try {
    Promise.resolve(listener()).catch(onError);
  } catch (error) {
    onError(error);
  }
}

/** Wraps a watch: after its first error it is not called again. */
export function isolateWatch(watch: Watch, warn: (warning: string) => void): Watch {
  let failed = false;
  const call = (listener: () => unknown) => {
    if (failed) return;
    callListener(listener, (error) => {
      if (!failed) warn(`the watchdog threw and is not called again: ${thrownText(error)}`);
      failed = true;
    });
  };
  return {
    activity: () => call(() => watch.activity()),
    stepDone: (iterations) => call(() => watch.stepDone(iterations)),
    toolStarted: (tool) => call(() => watch.toolStarted(tool)),
    toolEnded: () => call(() => watch.toolEnded()),
    stop: () => call(() => watch.stop()),
  };
}

/** Reports the warnings and audit events of one run to the host. */
export interface Reporter {
  readonly warnings: readonly string[];
  warn(warning: string): void;
  audit(kind: RunEvent["kind"], data: Record<string, unknown>): void;
  /** Waits until the audit log has written all events, but no longer than `timeoutMs`. */
  flush(clock: Clock, timeoutMs: number): Promise<void>;
}

/** Delivers events in order without blocking the run. A failed write to the audit log becomes a warning. */
export function createReporter(ports: RunPorts, info: RunInfo, stepOf: () => number): Reporter {
  const warnings: string[] = [];
  const pending = new Set<Promise<unknown>>();
  const audit: Reporter["audit"] = (kind, data) => {
    const { audit: port } = ports;
    if (port === undefined) return;
    const event = { kind, step: stepOf(), data };
    const write: Promise<unknown> = Promise.resolve()
      .then(() => port.record(info, event))
      .catch((error: unknown) => warnings.push(`the audit log was not written: ${thrownText(error)}`))
      .finally(() => pending.delete(write));
    pending.add(write);
  };
  return {
    warnings,
    warn(warning) {
      warnings.push(warning);
      callListener(
        () => ports.onWarning?.(info, warning),
        () => {},
      );
      audit("warning", { warning });
    },
    audit,
    async flush(clock, timeoutMs) {
      if (pending.size === 0) return;
      const written = new AbortController();
      await Promise.race([Promise.all(pending), clock.sleep(timeoutMs, written.signal)]);
      written.abort();
      if (pending.size > 0) warnings.push(`the audit log did not write ${pending.size} entries in time`);
    },
  };
}
