// Takes checkpoints in processes of their own. Walking a cell and storing many files needs hundreds of megabytes, which V8 and
// malloc keep: in a thread too (338 MB after a first checkpoint of 118,000 files and the end of its worker). A large
// pit would also start git, keepers and agents slowly, because fork copies its page tables. The process that has just finished waits for
// more work for a few seconds: a pit that starts walks all its cells.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { EffectiveConfig } from "../../cell/config.ts";
import type { Clock } from "../../platform/clock.ts";
import { LazarusError } from "../../platform/errors.ts";
import { fromSentError, type SentError } from "../../platform/worker/sent-error.ts";
import { workerUrl } from "../../platform/worker-module.ts";
import type { Event } from "../../registry/registry.ts";
import type { CheckpointOptions, CheckpointResult } from "../../snapshot/operations/checkpoint.ts";

/** Plain data: it is sent to the process. */
export interface CheckpointRequest {
  readonly effective: EffectiveConfig;
  readonly mission: string;
  readonly options: CheckpointOptions;
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export type CheckpointReply =
  | { readonly kind: "event"; readonly event: Event }
  | { readonly kind: "warning"; readonly line: string }
  | { readonly kind: "taken"; readonly result: CheckpointResult }
  | { readonly kind: "failed"; readonly error: SentError };

export interface ProcessListener {
  /** The process has recorded this event in the registry. */
  onEvent(event: Event): void;
  onWarning(line: string): void;
}

/** Disposing of it ends all processes. */
export interface CheckpointProcesses extends Disposable {
  /**
   * Undefined when no process can be started, or it ends by itself: perhaps this program was removed or replaced by another
   * version. Throws when it is killed.
   */
  take(request: CheckpointRequest): Promise<CheckpointResult | undefined>;
}

const IDLE_MS = 5000;

export function createCheckpointProcesses(clock: Clock, listener: ProcessListener): CheckpointProcesses {
  return new ProcessPool(clock, listener);
}

class ProcessPool implements CheckpointProcesses {
  private readonly busy = new Set<ChildProcess>();
  private idle: { readonly child: ChildProcess; readonly taken: AbortController } | undefined;
  private isClosed = false;
  private readonly clock: Clock;
  private readonly listener: ProcessListener;

  constructor(clock: Clock, listener: ProcessListener) {
    this.clock = clock;
    this.listener = listener;
  }

  async take(request: CheckpointRequest): Promise<CheckpointResult | undefined> {
    const child = this.takeIdle() ?? startProcess();
    this.busy.add(child);
    try {
      const result = await this.ask(child, request);
      if (result !== undefined) this.keep(child);
      return result;
    } finally {
      this.busy.delete(child);
      if (this.idle?.child !== child) end(child);
    }
  }

  [Symbol.dispose](): void {
    this.isClosed = true;
    this.endIdle();
    for (const child of this.busy) end(child);
  }

  private async ask(child: ChildProcess, request: CheckpointRequest): Promise<CheckpointResult | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<CheckpointResult | undefined>();
    const receive = (reply: CheckpointReply) => {
      if (reply.kind === "taken") resolve(reply.result);
      else if (reply.kind === "failed") reject(fromSentError(reply.error));
      else if (reply.kind === "event") this.listener.onEvent(reply.event);
      else this.listener.onWarning(reply.line);
    };
    const onExit = (_: number | null, signal: string | null) => {
      if (signal !== null) reject(processEnded(request.mission, `was killed by ${signal}`));
      else if (this.isClosed) reject(processEnded(request.mission, "ended with the pit"));
      else resolve(undefined);
    };
    const onError = () => resolve(undefined);
    child.on("message", receive).on("exit", onExit).on("error", onError);
    try {
      // If this fails, the process is gone.
      child.send(request, () => {});
      return await promise;
    } finally {
      child.off("message", receive).off("exit", onExit).off("error", onError);
    }
  }

  private takeIdle(): ChildProcess | undefined {
    const { child, taken } = this.idle ?? {};
    this.idle = undefined;
    taken?.abort();
    return child?.connected ? child : undefined;
  }

  private keep(child: ChildProcess): void {
    if (this.idle !== undefined) return;
    const taken = new AbortController();
    this.idle = { child, taken };
    void this.clock.sleep(IDLE_MS, taken.signal).then(() => {
      if (this.idle?.child === child) this.endIdle();
    });
  }

  private endIdle(): void {
    const child = this.takeIdle();
    if (child !== undefined) end(child);
  }
}

/** Detached: Ctrl-C in the pit's terminal is for the pit, which takes its last checkpoints then. */
function startProcess(): ChildProcess {
  const module = fileURLToPath(workerUrl("checkpoint-process", import.meta.url));
  const stdio = ["ignore", "ignore", "inherit", "ipc"] as const;
  // The pit's own directory may be gone.
  const child = fork(module, [], { cwd: "/", detached: true, serialization: "advanced", stdio: [...stdio] });
  // While it waits for work nothing else listens, and an unhandled error event would end the pit.
  return child.on("error", () => {});
}

function end(child: ChildProcess): void {
  child.unref();
  if (child.connected) child.disconnect();
}

function processEnded(mission: string, how: string): LazarusError {
  return new LazarusError("INTERRUPTED", `the process that was taking a checkpoint of ${mission} ${how}`, {
    hint: "dmesg | tail shows whether the kernel was out of memory",
    details: { mission },
  });
}
