// The interface between durable runs and a database: rows in both directions. The engine replays the AI SDK's own loop
// over the entries of a run, so the entries are all that is needed to continue it. JSON, secrets, encryption and the
// meaning of entries are handled by the layers above; a journal implements SQL, fencing, atomicity and durability.
//
// Every implementation guarantees:
// 1. A write is one transaction: all of its parts or none (entries, waits, taken messages, head).
// 2. A write is refused unless the run has its epoch and `seq` is the next one (INV-4). The same write again, because its
//    reply was lost, is `written` and applied once. The same holds for `insert`, `swapLease`, `send` and `answer`.
// 3. `sync: "full"`: a resolved write survives a power cut (INV-1). `sync: "lazy"`: it survives the death of the process,
//    but a power cut may lose it, provided that nothing written after it survives: what is kept is always a prefix of
//    the writes of a run. A `full` write therefore makes every earlier `lazy` one of its run durable too.
// 4. Nothing blocks the event loop: a lock held by another process is waited for asynchronously.
// 5. No limit on the number or size of entries. Cost of a write and of `readEntries(run, afterSeq)`: what they contain.
// 6. Writes of several runs may share a commit; a refused one does not affect the others.
import type { EffectClass, RunStatus } from "../model/types.ts";
import type { QueueClaim, QueueSettings, RateUse } from "./queue.ts";

/** The newest row format that this code reads, and the one that it writes. */
export const JOURNAL_FORMAT = 2;

/** The stored status: `queued` has no owner and waits for a slot, `waiting` for time, a message or an answer. */
export type JournalStatus = RunStatus | "queued" | "waiting" | "stub";

/** Everything but the content of a run. Changes at every write, except for what `RunIdentity` lists. */
export interface HeadRow extends RunIdentity {
  readonly status: JournalStatus;
  /** Raised by every claim and every decision of a human. */
  readonly epoch: number;
  /** Unique for each claim, so that a claim whose reply was lost is recognized. */
  readonly owner: string | null;
  readonly leaseUntilMs: number;
  /** How many times it was claimed since its last completed step or release. */
  readonly deaths: number;
  /** Number of writes so far. */
  readonly seq: number;
  /** The last step whose response is recorded. */
  readonly step: number;
  readonly phase: number;
  /** Messages in the transcript, for lists. */
  readonly messages: number;
  readonly redactions: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /**
   * When a waiting run is due, whether or not an answer comes; null: only an answer wakes it. Of a running one: when
   * something came for it since it was claimed, so that it is due as soon as it waits.
   */
  readonly wakeMs: number | null;
  /** When it was asked to cancel. */
  readonly cancelMs: number | null;
  readonly updatedAtMs: number;
  readonly output: string | null;
  readonly error: string | null;
}

/** What never changes. */
export interface RunIdentity {
  readonly id: string;
  readonly agentId: string;
  readonly parentRunId: string | null;
  readonly forkOf: string | null;
  /** The last step that it shares with `forkOf`. */
  readonly forkStep: number | null;
  readonly format: number;
  readonly createdAtMs: number;
  readonly queue: string | null;
  readonly caller: string | null;
  /** Higher first. */
  readonly priority: number;
  /** Model id, for the limits of a queue; default none. */
  readonly model?: string | null;
  /** Groups the runs of one conversation. */
  readonly thread: string | null;
  /** Digest of the agent that started it, to notice a changed agent. */
  readonly definition: string | null;
  readonly info: string;
}

/**
 * What an entry records. `input`: the call that began the run (step 0). `response`: the answer of the model, one per step.
 * `prepare`, `decision`: what a callback decided. `effect`: a tool call, the ledger. `part`: a step inside a tool.
 * `message`: something inserted before the step. `grant`: extra steps. `phase`: the output of a phase. `transcript`: a message of
 * a run that was started in the first format.
 */
export type EntryKind =
  | "input"
  | "prepare"
  | "response"
  | "decision"
  | "effect"
  | "part"
  | "message"
  | "grant"
  | "phase"
  | "transcript";

/** The state of an entry. Only effects and parts have states other than `done`. */
export type EntryState = "prepared" | "started" | "done" | "failed" | "unknown";

/** One entry, keyed by run, step, kind and call. A later write of the same key replaces it. */
export interface EntryRow {
  readonly step: number;
  readonly kind: EntryKind;
  /** Position among the entries of its kind in its step. Parts of a tool call: call × 2²⁰ + position. */
  readonly call: number;
  readonly state: EntryState;
  readonly attempts: number;
  /** When a sleep ends. */
  readonly dueMs: number | null;
  /** Digest of what the entry answers: the prompt of a response, the input of a call. */
  readonly digest: string | null;
  /** Name and class of a tool and the provider's id of the call: readable without a key. */
  readonly name: string | null;
  readonly class: EffectClass | null;
  readonly callId: string | null;
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  /** True when a secret was removed from the body. */
  readonly redacted: boolean;
  readonly body: string | null;
}

/** An entry as read: with the run that holds it, an ancestor for shared steps, and the write that changed it last. */
export interface StoredEntry extends EntryRow {
  readonly runId: string;
  readonly seq: number;
}

/** Something that a run waits for. */
export interface WaitRow {
  /** Unique in its run; an approval's own id. */
  readonly id: string;
  readonly kind: "approval" | "signal" | "sleep" | "child";
  readonly step: number;
  readonly call: number;
  /** Tool of an approval, names of the awaited messages, id of a child run. */
  readonly names: readonly string[];
  readonly state: "open" | "answered" | "expired" | "cancelled";
  readonly dueMs: number | null;
  /** Digest of the input that an approval is for. */
  readonly digest: string | null;
  /** Null until the wait is answered. */
  readonly answer: string | null;
}

/** A message in a run's inbox. */
export interface InboxRow {
  /** Chosen by the sender; a second message with the same id is a duplicate. */
  readonly id: string;
  readonly name: string;
  readonly body: string;
  readonly sentMs: number;
}

/** What a power cut may do to a write (see 3. above). Only responses, decisions and reads are `lazy`. */
export type Sync = "full" | "lazy";

/** What a write sets in the head; what is left out stays. */
export type HeadChange = Partial<
  Pick<
    HeadRow,
    "status" | "step" | "phase" | "messages" | "inputTokens" | "outputTokens" | "wakeMs" | "output" | "error"
  >
>;

/** One write of a run's owner. A response is written with `started` of its first call, reads with the next response. */
export interface JournalWrite {
  readonly runId: string;
  readonly epoch: number;
  /** `seq` of the head after this write. */
  readonly seq: number;
  readonly nowMs: number;
  /** When the lease expires; 0 releases it. */
  readonly leaseUntilMs: number;
  readonly sync: Sync;
  readonly entries: readonly EntryRow[];
  readonly waits?: readonly WaitRow[];
  /** Ids of inbox messages that this write consumes. */
  readonly taken?: readonly string[];
  readonly head?: HeadChange;
  /** Added to the head's count. */
  readonly redactions?: number;
}

/**
 * `written`: by this call or by an earlier one whose reply was lost. Otherwise nothing was written. `stale`: a later epoch
 * owns the run, or it has ended. `out-of-order`: the run has writes that this process did not make.
 */
export type JournalVerdict = "written" | "stale" | "out-of-order" | "missing";

/** Filters for runs; default all but stubs. */
export interface JournalQuery {
  readonly statuses?: readonly JournalStatus[] | undefined;
  readonly agentId?: string | undefined;
  readonly parentRunId?: string | undefined;
  readonly thread?: string | undefined;
  readonly queue?: string | undefined;
  /** Only runs whose id starts with this. */
  readonly idPrefix?: string | undefined;
  /** Only runs in state `waiting` that are due at this time. */
  readonly dueMs?: number | undefined;
  readonly limit?: number | undefined;
}

/** A claim of a run. */
export interface LeaseClaim {
  readonly runId: string;
  /** The epoch that was read; the claim succeeds only if it is still current, or if this very claim made it. */
  readonly seenEpoch: number;
  readonly owner: string;
  readonly leaseUntilMs: number;
  readonly nowMs: number;
}

/** A human's decision on an effect of a run without an owner. */
export interface Settlement {
  readonly runId: string;
  readonly seenEpoch: number;
  readonly entry: EntryRow;
  readonly nowMs: number;
}

/** A run as a plan saw it; a later epoch means that it was claimed since. */
export interface PlannedRun {
  readonly runId: string;
  readonly epoch: number;
}

/** What a prune removes. A run with kept forks keeps the steps up to `keepStep` and becomes a stub. */
export interface JournalPrunePlan {
  readonly remove: readonly PlannedRun[];
  readonly stub: readonly (PlannedRun & { readonly keepStep: number })[];
  /** Runs that must still have a response for each of their steps. */
  readonly prove: readonly { readonly runId: string; readonly step: number }[];
}

/** What retention needs to know about a run. */
export type Lineage = Pick<
  HeadRow,
  | "id"
  | "status"
  | "epoch"
  | "step"
  | "updatedAtMs"
  | "forkOf"
  | "forkStep"
  | "format"
  | "agentId"
  | "parentRunId"
> & { readonly unknownEffects: number };

/** A database of runs. */
export interface Journal extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  /** Path or address, for messages. */
  readonly place: string;
  /** Whether runs outlive the process. */
  readonly survives: boolean;
  /**
   * Adds a run with its first entries and waits, durably. False when the id is taken (also by a stub or by a pruned run whose id is
   * remembered), or when the run it is forked from is gone or a stub, checked in the same transaction.
   */
  insert(head: HeadRow, entries: readonly EntryRow[], waits?: readonly WaitRow[]): Promise<boolean>;
  write(write: JournalWrite): Promise<JournalVerdict>;
  readHead(runId: string): Promise<HeadRow | undefined>;
  /**
   * In order of step, kind, call. All entries, those shared with ancestors included; with `afterSeq`, only its own whose
   * last change is after that write.
   */
  readEntries(runId: string, afterSeq?: number): Promise<StoredEntry[]>;
  /** All entries without their bodies, which may be large. */
  readStates(runId: string): Promise<StoredEntry[]>;
  /** Newest first. */
  list(query: JournalQuery): Promise<HeadRow[]>;
  /** Raises the epoch and changes the owner of a run that has not ended, which becomes `running`. */
  swapLease(claim: LeaseClaim): Promise<boolean>;
  /**
   * Claims `queued` runs of a queue, and `waiting` ones that are due, within the limits: higher priority first, then the
   * caller with the fewest runs, then the oldest. A waiting run holds no slot.
   */
  claimQueued(claim: QueueClaim): Promise<HeadRow[]>;
  /** The settings of all queues that have any, by name. */
  readQueues(): Promise<ReadonlyMap<string, QueueSettings>>;
  /** Sets the limits of a queue for all processes; null removes them. */
  writeQueue(queue: string, settings: QueueSettings | null): Promise<void>;
  /** Takes from the buckets of a queue; returns 0, or how many milliseconds to wait before asking again. */
  takeRate(use: RateUse): Promise<number>;
  /** The last tick of a schedule that was handled; undefined before the first. */
  readTick(schedule: string): Promise<number | undefined>;
  /** False when another process has handled this tick or a later one. */
  writeTick(schedule: string, tickMs: number): Promise<boolean>;
  renewLease(runId: string, epoch: number, leaseUntilMs: number): Promise<boolean>;
  /** Gives up the lease and resets `deaths`. */
  releaseLease(runId: string, epoch: number): Promise<boolean>;
  readWaits(runId: string): Promise<WaitRow[]>;
  /**
   * Answers an open wait; any process may, not only the owner of the run. A `waiting` run becomes due immediately (`wakeMs` = `nowMs`),
   * and so do its ancestors, as with `send`, `requestCancel` and `settle`. `expired`: its time was over.
   */
  answer(
    runId: string,
    waitId: string,
    answer: string,
    nowMs: number,
  ): Promise<"answered" | "closed" | "expired" | "missing">;
  /** Adds a message to the inbox, from any process. A `waiting` run with an open wait for its name becomes due immediately. */
  send(runId: string, message: InboxRow): Promise<"accepted" | "duplicate" | "ended" | "missing">;
  /** Messages that no write has taken, oldest first. */
  readInbox(runId: string): Promise<InboxRow[]>;
  /** Asks the owner to cancel; a `waiting` or `queued` run becomes due immediately. False when it has ended or is unknown. */
  requestCancel(runId: string, nowMs: number): Promise<boolean>;
  /**
   * Parts of the response that is being streamed, for followers in other processes; from position `from`, replacing
   * what is there. Not durable, and removed by the write of the response, which moves the head to the step.
   */
  putParts(
    runId: string,
    epoch: number,
    step: number,
    from: number,
    parts: readonly string[],
  ): Promise<boolean>;
  readParts(runId: string, step: number, from: number): Promise<{ epoch: number; parts: string[] }>;
  /** Resolves when the run may have changed since write `afterSeq` or its parts did; early wake-ups are allowed. */
  changed(runId: string, afterSeq: number, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when another party may have sent a message, answered a wait or asked to cancel since the call. Not for the
   * owner's own writes: an owner calls it for as long as it works.
   */
  signalled(runId: string, signal: AbortSignal): Promise<void>;
  /** Raises the epoch and writes the entry. A `needs-human` run without unknown effects becomes `running`, unowned. */
  settle(settlement: Settlement): Promise<boolean>;
  /** Passes all runs to `decide` and removes what it returns, in one transaction that excludes new forks and claims. */
  prune(decide: (lineage: readonly Lineage[]) => JournalPrunePlan): Promise<JournalPrunePlan>;
  /** Bytes on disk, including the write-ahead log; 0 for memory. */
  sizeBytes(): Promise<number>;
}

/** Positions of parts within one call. */
export const PARTS_PER_CALL = 2 ** 20;
