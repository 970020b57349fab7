// A run that is being executed or followed: what its journal holds, how far the SDK's loop has replayed it, and how it
// stops. The loop itself is the AI SDK's. A follower has no recorder: it waits for what the owner records and may not act.
import { LazarusError } from "../../platform/errors.ts";
import type { HeadRow, Sync, WaitRow } from "../journal/journal.ts";
import { type Entry, effectOf, keyOf } from "../log/entry.ts";
import { type RunLog, readEntries, requireHead, timeOf } from "../log/run-log.ts";
import { effectId } from "../model/ledger.ts";
import { chainPrompt, type PromptChain } from "../model/prompt-digest.ts";
import type { Effect, Usage } from "../model/types.ts";
import type { Recorder } from "./recorder.ts";

/** Where a tool call is recorded. */
export interface Place {
  readonly step: number;
  readonly call: number;
}

/** A tool call of a response, as the provider made it. */
export interface ResponseCall extends Place {
  readonly callId: string;
  readonly tool: string;
  /** The text that the model wrote, before any schema. */
  readonly input: string;
  /** Digest of the input that a human approved, of a call that runs because of that. */
  readonly approved?: string | null;
}

/** What a live run needs to know about its store and its part of the journal. */
export interface LiveRunOptions {
  readonly log: RunLog;
  readonly head: HeadRow;
  readonly entries: readonly Entry[];
  readonly waits: readonly WaitRow[];
  readonly recorder?: Recorder | undefined;
  /** The last step before this call of the loop. */
  readonly base: number;
  /** The last step of this call when it has ended; nothing new happens then. */
  readonly limit?: number | undefined;
  readonly graceMs: number;
  /** Effects run one at a time and in order; reads run together. */
  readonly serial?: boolean | undefined;
  /** Replays only what is recorded, without waiting for a process to add entries. */
  readonly recordedOnly?: boolean | undefined;
  /** Minimum time between writes that no effect depends on. Default 0. */
  readonly throttleMs?: number | undefined;
  /** Called when a write fails that no effect depends on; it is repeated with the next one. Default: the run ends. */
  readonly onWriteFailed?: ((error: unknown) => void) | undefined;
}

/** One run in progress. */
export class LiveRun {
  readonly id: string;
  readonly log: RunLog;
  readonly queue: string | null;
  readonly recorder: Recorder | undefined;
  readonly graceMs: number;
  readonly serial: boolean;
  readonly recordedOnly: boolean;
  /** The last step before this call of the loop. */
  base: number;
  readonly limit: number | undefined;
  /** Tokens used by all steps that this process has seen. */
  usage: Usage;
  /** Messages in the transcript. */
  messages: number;
  /** Aborts the SDK's loop. */
  readonly stop = new AbortController();
  /** Rejects when the run has to stop for a reason that the SDK must not handle. */
  readonly halted: Promise<never>;
  haltedBy: unknown;
  /** Called with each response that is replayed, and whether the prompt is still the same. */
  onReplay: ((step: number, wasSame: boolean) => void) | undefined;
  /** False once its record is closed. */
  isOpen = true;
  /** Set when it waits for a time, a message or a human. */
  paused: { readonly wakeMs: number | null } | undefined;
  readonly warnings: string[] = [];
  /** Tool calls in progress, and those that are suspended. */
  readonly inFlight = new Set<Promise<unknown>>();
  /** Waits of this run, by id. */
  readonly waits: Map<string, WaitRow>;
  /** Calls that a human approved, by the id of the call. */
  readonly approved = new Map<string, ResponseCall>();
  /** The last step whose response the loop has received. */
  step: number;
  calls: ResponseCall[] = [];
  readonly #entries: Map<string, Entry>;
  readonly #atOpen: ReadonlySet<string>;
  readonly #ended: boolean;
  readonly #throttleMs: number;
  readonly #onWriteFailed: (error: unknown) => void;
  #seq: number;
  #used = new Map<string, number>();
  #halt!: (error: unknown) => void;
  #ids = 0;
  #idStep: number;
  #prompt: PromptChain | undefined;

  constructor({
    log,
    head,
    entries,
    waits,
    recorder,
    base,
    limit,
    graceMs,
    serial,
    recordedOnly,
    throttleMs,
    onWriteFailed,
  }: LiveRunOptions) {
    this.id = head.id;
    this.queue = head.queue;
    this.log = log;
    this.recorder = recorder;
    this.graceMs = graceMs;
    this.serial = serial ?? false;
    this.recordedOnly = recordedOnly ?? false;
    this.base = base;
    this.limit = limit;
    this.step = base;
    this.#idStep = base;
    this.usage = { inputTokens: head.inputTokens, outputTokens: head.outputTokens };
    this.messages = head.messages;
    this.#throttleMs = throttleMs ?? 0;
    this.#onWriteFailed = onWriteFailed ?? ((error) => this.halt(error));
    this.#seq = head.seq;
    this.#ended = !["running", "queued", "waiting"].includes(head.status);
    this.#entries = new Map(entries.map((entry) => [keyOf(entry.step, entry.kind, entry.call), entry]));
    this.#atOpen = new Set(this.#entries.keys());
    this.waits = new Map(waits.map((wait) => [wait.id, wait]));
    this.halted = new Promise((_, reject) => {
      this.#halt = reject;
    });
    this.halted.catch(() => {});
    recorder?.lost.addEventListener("abort", () => this.halt(recorder.lost.reason), { once: true });
  }

  get isFollower(): boolean {
    return this.recorder === undefined;
  }

  /** Stops the loop with an error that the SDK must not handle. */
  halt(error: unknown): void {
    this.haltedBy ??= error;
    this.#halt(error);
    if (!this.stop.signal.aborted) this.stop.abort(error);
  }

  get(step: number, kind: Entry["kind"], call = 0): Entry | undefined {
    return this.#entries.get(keyOf(step, kind, call));
  }

  entriesOf(kind: Entry["kind"]): Entry[] {
    return [...this.#entries.values()].filter((entry) => entry.kind === kind);
  }

  /** Whether an entry was there before this process began to work on the run. */
  wasRecorded(step: number, kind: Entry["kind"], call = 0): boolean {
    return this.#atOpen.has(keyOf(step, kind, call));
  }

  /** Whether the loop replays what already happened: the next response is recorded, or nothing new may happen. */
  get isPast(): boolean {
    return (
      this.isFollower ||
      this.#ended ||
      this.limit !== undefined ||
      this.wasRecorded(this.step + 1, "response")
    );
  }

  /** Adds an entry to the next write. */
  keep(entry: Entry, sync: Sync = "lazy"): void {
    if (this.recorder === undefined) throw new Error(`a follower of run ${this.id} may not write`);
    this.#entries.set(keyOf(entry.step, entry.kind, entry.call), entry);
    this.recorder.put([entry], sync);
  }

  /** Writes an entry; it is durable when the promise resolves. */
  async write(entry: Entry, sync: Sync): Promise<void> {
    this.keep(entry, sync);
    await this.recorder!.flush();
  }

  /** Begins to write what is waiting, without delaying the run. */
  writeBehind(): void {
    if (this.recorder === undefined || this.recorder.unsavedMs < this.#throttleMs) return;
    this.recorder.flush().catch(this.#onWriteFailed);
  }

  /** Begins another call of the loop after the last step of the one before. */
  enterSegment(base: number): void {
    this.base = base;
    this.enterStep(base, []);
    this.beginStep(base);
  }

  /** The chain of the prompt of this step, which extends that of the step before. */
  chainOf(prompt: PromptChain["prompt"]): PromptChain {
    this.#prompt = chainPrompt(this.#prompt, prompt);
    return this.#prompt;
  }

  /** Adds the response of a step, and counts its tokens and messages. */
  keepResponse(entry: Entry, used: Usage): void {
    const { inputTokens, outputTokens } = this.usage;
    this.usage = {
      inputTokens: inputTokens + used.inputTokens,
      outputTokens: outputTokens + used.outputTokens,
    };
    // The results of a step are one message.
    this.messages += this.calls.length > 0 ? 2 : 1;
    this.keep(entry);
    this.recorder!.head({ step: entry.step, messages: this.messages, ...this.usage });
  }

  /** The recorded response of a step. A follower waits for it; for an owner, undefined means that the model has to be called. */
  async response(step: number): Promise<Entry | undefined> {
    if (this.limit !== undefined && step > this.limit) {
      this.halt(changed(this.id, `it requests step ${step} where the recorded run ended`));
      await never();
    }
    return this.awaited(() => this.get(step, "response"));
  }

  /** What `find` returns; a follower waits until it returns something or the run ends. */
  async awaited<T>(find: () => T | undefined | Promise<T | undefined>): Promise<T | undefined> {
    for (;;) {
      const looked = find();
      // Another microtask here would change the order in which the SDK asks for ids.
      const found = looked instanceof Promise ? await looked : looked;
      if (found !== undefined || !this.isFollower) return found;
      const head = await requireHead(this.log, this.id);
      if (await this.#refresh(head)) continue;
      if (this.recordedOnly) {
        this.halt(changed(this.id, `it would continue where the recorded run is ${head.status}`));
        await never();
      }
      if (!["running", "queued", "waiting"].includes(head.status)) {
        const error = new LazarusError("RUN_ENDED", `run ${this.id} ended as ${head.status}`, {
          hint: `lazarus runs show ${this.id}`,
        });
        this.halt(error);
        throw error;
      }
      if (this.stop.signal.aborted) throw this.stop.signal.reason;
      await this.log.journal.changed(this.id, this.#seq, this.stop.signal);
    }
  }

  /** A follower waits here until it is known whether another step follows. */
  async awaitNext(): Promise<void> {
    while (this.isFollower && !this.recordedOnly && this.get(this.step + 1, "response") === undefined) {
      const head = await requireHead(this.log, this.id);
      if (await this.#refresh(head)) continue;
      if (head.status !== "running" || this.stop.signal.aborted) return;
      await this.log.journal.changed(this.id, this.#seq, this.stop.signal);
    }
  }

  async #refresh(head: HeadRow): Promise<boolean> {
    if (head.seq <= this.#seq) return false;
    for (const entry of await readEntries(this.log, this.id, this.#seq)) {
      this.#entries.set(keyOf(entry.step, entry.kind, entry.call), entry);
    }
    this.#seq = head.seq;
    return true;
  }

  /** Called when the loop gets the response of a step: its calls are the only ones that may run. */
  enterStep(step: number, calls: readonly ResponseCall[]): void {
    this.step = step;
    this.calls = [...calls];
    this.#used = new Map();
  }

  /**
   * The place of the next call with this id, counted separately for each purpose: ids are unique only within a step, and
   * not always there. Undefined for a call that neither the model nor an approval made.
   */
  placeOf(callId: string, purpose: string): ResponseCall | undefined {
    const places = this.calls.filter((call) => call.callId === callId);
    const count = this.#used.get(`${purpose} ${callId}`) ?? 0;
    this.#used.set(`${purpose} ${callId}`, count + 1);
    return places[Math.min(count, places.length - 1)] ?? this.approved.get(callId);
  }

  /** Called when the loop asks for the response of a step: ids that the SDK asks for from now on belong to it. */
  beginStep(step: number): void {
    this.#idStep = step;
    this.#ids = 0;
  }

  /**
   * The ids that the SDK asks for. They do not depend on when a part of a response arrives, so they are the same at every
   * replay, even by a fork, and they name the run that took the step.
   */
  nextId(): string {
    this.#ids += 1;
    const shared = this.get(this.#idStep, "response") ?? this.get(0, "input");
    const isShared = this.wasRecorded(this.#idStep, "response") || this.#idStep === 0;
    return `${(isShared ? shared?.holder : undefined) ?? this.id}.${this.#idStep}.${this.#ids}`;
  }

  hasEnded({ step, call }: Place): boolean {
    const state = this.get(step, "effect", call)?.state;
    return state === "done" || state === "failed";
  }

  effectIdOf({ step, call }: Place): string {
    return effectId(this.id, step, call);
  }

  effectAt(place: Place): Effect | undefined {
    const entry = this.get(place.step, "effect", place.call);
    return entry && effectOf(this.id, entry);
  }

  now(): number {
    return timeOf(this.log);
  }

  warn(warning: string): void {
    if (!this.warnings.includes(warning)) this.warnings.push(warning);
  }

  /** Waits until no call is in progress, but no longer than the grace period. */
  async drain(): Promise<void> {
    if (this.inFlight.size === 0) return;
    const done = new AbortController();
    const { clock } = this.log.machine;
    await Promise.race([Promise.allSettled([...this.inFlight]), clock.sleep(this.graceMs, done.signal)]);
    done.abort();
  }
}

/** Never resolves: the loop that awaits it has been abandoned. */
export function never(): Promise<never> {
  return new Promise(() => {});
}

/** The error for an agent that does not fit its record. */
export function changed(runId: string, problem: string): LazarusError {
  return new LazarusError("RUN_CHANGED", `run ${runId} does not fit this agent: ${problem}`, {
    hint: "resume it with the version of the agent that started it, or fork it",
  });
}
