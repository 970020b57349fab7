// Takes checkpoints in processes of their own. Walking a cell and storing many files needs hundreds of megabytes, which V8 and
// malloc keep: in a thread too (338 MB after a first checkpoint of 118,000 files and the end of its worker). A large
// pit would also start git, keepers and agents slowly, because fork copies its page tables. The process that has just finished waits for
// more work for a few seconds: a pit that starts walks all its cells.
import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { EffectiveConfig } from "../../cell/config.ts";
import type { Clock } from "../../platform/clock.ts";
import { LazarusError } from "../../platform/errors.ts";
import { VERSION } from "../../platform/version.ts";
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
  /** Sent once, when the process is loaded. */
  | { readonly kind: "ready" }
  | { readonly kind: "event"; readonly event: Event }
  | { readonly kind: "warning"; readonly line: string }
  | { readonly kind: "taken"; readonly result: CheckpointResult }
  | { readonly kind: "failed"; readonly error: SentError };

export interface ProcessListener {
  /** The process has recorded this event in the registry. */
  onEvent(event: Event): void;
  onWarning(line: string): void;
}

const IDLE_MS = 5000;

/** Disposing of it ends all processes. */
export class CheckpointProcesses implements Disposable {
  private readonly busy = new Set<ChildProcess>();
  private idle: { readonly child: ChildProcess; readonly taken: AbortController } | undefined;
  private isClosed = false;
  private readonly clock: Clock;
  private readonly listener: ProcessListener;

  constructor(clock: Clock, listener: ProcessListener) {
    this.clock = clock;
    this.listener = listener;
  }

  /**
   * Undefined when no process can be started, or it ends before it is loaded: perhaps this program was removed or replaced by
   * another version. Throws when it is killed or ends later. The caller limits how many there are at the same time.
   */
  async take(request: CheckpointRequest): Promise<CheckpointResult | undefined> {
    const { mission } = request;
    if (this.isClosed)
      throw checkpointFailed(mission, `the pit ended before it took a checkpoint of ${mission}`, RETRY);
    const idle = this.takeIdle();
    const result = idle && (await this.use(idle, true, request));
    if (result !== undefined) return result;
    const child = startProcess();
    return child && (await this.use(child, false, request));
  }

  private async use(
    child: ChildProcess,
    isLoaded: boolean,
    request: CheckpointRequest,
  ): Promise<CheckpointResult | undefined> {
    this.busy.add(child);
    try {
      const result = await this.ask(child, isLoaded, request);
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

  private async ask(
    child: ChildProcess,
    wasLoaded: boolean,
    request: CheckpointRequest,
  ): Promise<CheckpointResult | undefined> {
    let isLoaded = wasLoaded;
    const { promise, resolve, reject } = Promise.withResolvers<CheckpointResult | undefined>();
    const receive = (reply: CheckpointReply) => {
      if (reply.kind === "ready") isLoaded = true;
      else if (reply.kind === "taken") resolve(reply.result);
      else if (reply.kind === "failed") reject(fromSentError(reply.error));
      else if (reply.kind === "event") this.listener.onEvent(reply.event);
      else this.listener.onWarning(reply.line);
    };
    const fail = (how: string, hint: string) => {
      const message = `the process that was taking a checkpoint of ${request.mission} ${how}`;
      reject(checkpointFailed(request.mission, message, hint));
    };
    const onExit = (code: number | null, signal: string | null) => {
      if (signal !== null) fail(`was killed by ${signal}`, signal === "SIGKILL" ? OUT_OF_MEMORY : RETRY);
      else if (this.isClosed) fail("ended with the pit", RETRY);
      else if (isLoaded)
        fail(`ended with exit code ${code}`, "see what the pit printed, then run the same command again");
      else resolve(undefined);
    };
    const onError = () => resolve(undefined);
    child.on("message", receive).on("exit", onExit).on("error", onError);
    try {
      child.send(request, (error) => {
        // The process is gone. When the pit is ending, its exit follows.
        if (error !== null && !this.isClosed) resolve(undefined);
      });
      return await promise;
    } finally {
      child.off("message", receive).off("exit", onExit).off("error", onError);
    }
  }

  private takeIdle(): ChildProcess | undefined {
    const { child, taken } = this.idle ?? {};
    this.idle = undefined;
    taken?.abort();
    if (child === undefined || isAlive(child)) return child;
    end(child);
    return undefined;
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
function startProcess(): ChildProcess | undefined {
  const module = fileURLToPath(workerUrl("checkpoint-process", import.meta.url));
  // The pit's own directory may be gone.
  const options: ForkOptions = {
    cwd: "/",
    detached: true,
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  };
  try {
    const child = fork(module, [VERSION], options);
    // While it waits for work nothing else listens, and an unhandled error event would end the pit.
    child.on("error", () => {});
    // Without descriptors (EMFILE) it has no channel; other errors, such as ENOMEM, are thrown.
    return child.connected ? child : undefined;
  } catch {
    return undefined;
  }
}

/** The channel may stay open for a while after the exit. */
function isAlive({ connected, exitCode, signalCode }: ChildProcess): boolean {
  return connected && exitCode === null && signalCode === null;
}

function end(child: ChildProcess): void {
  child.unref();
  if (child.connected) child.disconnect();
}

const RETRY = "run the same command again";
const OUT_OF_MEMORY = "dmesg | tail shows whether the kernel was out of memory";

function checkpointFailed(mission: string, message: string, hint: string): LazarusError {
  return new LazarusError("CHECKPOINT_FAILED", message, { hint, details: { mission } });
}
