// The journal in memory: the reference that the others are tested against. It follows the same rules, but its runs
// end with the process.

import { CLAIMABLE, isEnded, nextHead, verdictOf } from "./head.ts";
import type {
  EntryRow,
  HeadRow,
  InboxRow,
  Journal,
  JournalPrunePlan,
  JournalQuery,
  JournalVerdict,
  JournalWrite,
  StoredEntry,
  WaitRow,
} from "./journal.ts";
import { createMemoryQueues } from "./memory-queues.ts";
import { missingResponses } from "./refusal.ts";

interface Run {
  head: HeadRow;
  readonly entries: Map<string, StoredEntry>;
  readonly waits: Map<string, WaitRow>;
  readonly inbox: Map<string, InboxRow & { taken: boolean }>;
  parts: { epoch: number; step: number; parts: string[] };
  readonly listeners: Set<() => void>;
  /** Called for what others do, not for the owner's writes. */
  readonly signals: Set<() => void>;
}

/** Creates an empty journal in memory. */
export function createMemoryJournal(): Journal {
  const runs = new Map<string, Run>();
  const pruned = new Set<string>();
  return {
    kind: "memory",
    place: "memory",
    survives: false,
    insert: async (head, entries, waits) => !pruned.has(head.id) && insertRun(runs, head, entries, waits),
    write: async (write) => writeRun(runs.get(write.runId), write),
    readHead: async (runId) => runs.get(runId)?.head,
    readEntries: async (runId, afterSeq = -1) => entriesOf(runs, runId, afterSeq),
    readStates: async (runId) => entriesOf(runs, runId, -1).map((entry) => ({ ...entry, body: null })),
    list: async (query) => listRuns(runs, query),
    ...leases(runs),
    ...createMemoryQueues({
      heads: () => [...runs.values()].map(({ head }) => head),
      change: (id, change) => setHead(runs.get(id)!, change),
    }),
    ...waiting(runs),
    ...streaming(runs),
    async settle({ runId, seenEpoch, entry, nowMs }) {
      const run = runs.get(runId);
      if (run?.head.epoch !== seenEpoch) return false;
      putEntries(run, [entry], run.head.seq + 1);
      const parked =
        run.head.status === "needs-human" && ![...run.entries.values()].some((e) => e.state === "unknown");
      setHead(run, {
        epoch: seenEpoch + 1,
        seq: run.head.seq + 1,
        deaths: 0,
        updatedAtMs: nowMs,
        ...(parked ? { status: "running", owner: null, leaseUntilMs: 0 } : {}),
      });
      wakeChain(runs, run, nowMs);
      return true;
    },
    async prune(decide) {
      const plan = decide(
        [...runs.values()].map(({ head, entries }) => ({ ...head, unknownEffects: unknowns(entries) })),
      );
      applyPrune(runs, plan);
      for (const { runId } of plan.remove) pruned.add(runId);
      return plan;
    },
    sizeBytes: async () => 0,
    async [Symbol.asyncDispose]() {},
  };
}

function insertRun(
  runs: Map<string, Run>,
  head: HeadRow,
  entries: readonly EntryRow[],
  waits: readonly WaitRow[] = [],
): boolean {
  const known = runs.get(head.id);
  if (known !== undefined)
    return head.owner !== null && known.head.owner === head.owner && known.head.epoch === head.epoch;
  const parent = head.forkOf === null ? undefined : runs.get(head.forkOf)?.head;
  if (
    head.forkOf !== null &&
    (parent === undefined || parent.status === "stub" || parent.step < head.forkStep!)
  ) {
    return false;
  }
  const run: Run = {
    head,
    entries: new Map(),
    waits: new Map(waits.map((wait) => [wait.id, wait])),
    inbox: new Map(),
    parts: { epoch: 0, step: 0, parts: [] },
    listeners: new Set(),
    signals: new Set(),
  };
  putEntries(run, entries, head.seq);
  runs.set(head.id, run);
  return true;
}

function writeRun(run: Run | undefined, write: JournalWrite): JournalVerdict {
  if (run === undefined) return "missing";
  const verdict = verdictOf(run.head, write);
  if (verdict !== "next") return verdict;
  putEntries(run, write.entries, write.seq);
  for (const wait of write.waits ?? []) {
    // An answer that came first stays.
    const known = run.waits.get(wait.id);
    if (known === undefined || known.state === "open" || wait.state !== "open") run.waits.set(wait.id, wait);
  }
  for (const id of write.taken ?? []) {
    const message = run.inbox.get(id);
    if (message !== undefined) message.taken = true;
  }
  if (write.entries.some(({ kind, step }) => kind === "response" && step === run.parts.step)) {
    run.parts = { epoch: write.epoch, step: 0, parts: [] };
  }
  setHead(run, nextHead(run.head, write));
  return "written";
}

function leases(runs: Map<string, Run>): Pick<Journal, "swapLease" | "renewLease" | "releaseLease"> {
  return {
    async swapLease({ runId, seenEpoch, owner, leaseUntilMs, nowMs }) {
      const run = runs.get(runId);
      if (run === undefined) return false;
      const { head } = run;
      if (head.epoch === seenEpoch + 1 && head.owner === owner) return true;
      if (head.epoch !== seenEpoch || isEnded(head.status)) return false;
      setHead(run, {
        epoch: seenEpoch + 1,
        owner,
        leaseUntilMs,
        status: "running",
        wakeMs: null,
        deaths: head.deaths + (head.status === "running" ? 1 : 0),
        updatedAtMs: nowMs,
      });
      return true;
    },
    async renewLease(runId, epoch, leaseUntilMs) {
      const run = runs.get(runId);
      if (run?.head.epoch !== epoch || run.head.status !== "running") return false;
      setHead(run, { leaseUntilMs });
      return true;
    },
    async releaseLease(runId, epoch) {
      const run = runs.get(runId);
      if (run?.head.epoch !== epoch) return false;
      setHead(run, { leaseUntilMs: 0, owner: null, deaths: 0 });
      return true;
    },
  };
}

type Waiting = Pick<Journal, "readWaits" | "answer" | "send" | "readInbox" | "requestCancel">;

function waiting(runs: Map<string, Run>): Waiting {
  const wake = (run: Run, nowMs: number) => {
    wakeChain(runs, run, nowMs);
    for (const listener of [...run.signals]) listener();
  };
  return {
    readWaits: async (runId) => [...(runs.get(runId)?.waits.values() ?? [])],
    async answer(runId, waitId, answer, nowMs) {
      const run = runs.get(runId);
      const wait = run?.waits.get(waitId);
      if (run === undefined || wait === undefined) return "missing";
      if (wait.state === "answered" && wait.answer === answer) return "answered";
      if (wait.state !== "open" || isEnded(run.head.status)) return "closed";
      if (wait.dueMs !== null && wait.dueMs <= nowMs) return "expired";
      run.waits.set(waitId, { ...wait, state: "answered", answer });
      wake(run, nowMs);
      return "answered";
    },
    async send(runId, message) {
      const run = runs.get(runId);
      if (run === undefined || run.head.status === "stub") return "missing";
      if (run.inbox.has(message.id)) return "duplicate";
      if (isEnded(run.head.status)) return "ended";
      run.inbox.set(message.id, { ...message, taken: false });
      const awaited = [...run.waits.values()].some(
        ({ kind, state, names }) => kind === "signal" && state === "open" && names.includes(message.name),
      );
      if (awaited || run.head.status === "running") wake(run, message.sentMs);
      return "accepted";
    },
    async readInbox(runId) {
      const rows = [...(runs.get(runId)?.inbox.values() ?? [])];
      return rows.filter(({ taken }) => !taken).map(({ taken: _, ...row }) => row);
    },
    async requestCancel(runId, nowMs) {
      const run = runs.get(runId);
      if (run === undefined || isEnded(run.head.status)) return false;
      setHead(run, { cancelMs: run.head.cancelMs ?? nowMs });
      wake(run, nowMs);
      return true;
    },
  };
}

/** The run and its ancestors, which wait with it. A running one is due as soon as it waits. */
function wakeChain(runs: Map<string, Run>, first: Run, nowMs: number): void {
  const chain = new Set<Run>();
  for (let run: Run | undefined = first; run !== undefined && !chain.has(run); ) {
    chain.add(run);
    run = runs.get(run.head.parentRunId ?? "");
  }
  for (const run of chain) {
    if (CLAIMABLE.includes(run.head.status)) setHead(run, { wakeMs: nowMs });
    else notify(run);
  }
}

type Streaming = Pick<Journal, "putParts" | "readParts" | "changed" | "signalled">;

function streaming(runs: Map<string, Run>): Streaming {
  return {
    async putParts(runId, epoch, step, from, parts) {
      const run = runs.get(runId);
      if (run?.head.epoch !== epoch) return false;
      const kept = run.parts.step === step && run.parts.epoch === epoch ? run.parts.parts.slice(0, from) : [];
      run.parts = { epoch, step, parts: [...kept, ...parts] };
      notify(run);
      return true;
    },
    async readParts(runId, step, from) {
      const parts = runs.get(runId)?.parts;
      return parts?.step === step
        ? { epoch: parts.epoch, parts: parts.parts.slice(from) }
        : { epoch: 0, parts: [] };
    },
    async changed(runId, afterSeq, signal) {
      const run = runs.get(runId);
      if (run !== undefined && run.head.seq <= afterSeq) await listen(run.listeners, signal);
    },
    async signalled(runId, signal) {
      const run = runs.get(runId);
      if (run !== undefined) await listen(run.signals, signal);
    },
  };
}

function listen(listeners: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      listeners.delete(wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    if (signal.aborted) return resolve();
    listeners.add(wake);
    signal.addEventListener("abort", wake, { once: true });
  });
}

function setHead(run: Run, change: Partial<HeadRow>): HeadRow {
  run.head = { ...run.head, ...change };
  notify(run);
  return run.head;
}

function notify(run: Run): void {
  for (const listener of [...run.listeners]) listener();
}

function putEntries(run: Run, entries: readonly EntryRow[], seq: number): void {
  for (const entry of entries) {
    run.entries.set(`${entry.step} ${entry.kind} ${entry.call}`, { ...entry, runId: run.head.id, seq });
  }
}

function unknowns(entries: ReadonlyMap<string, StoredEntry>): number {
  return [...entries.values()].filter(({ state }) => state === "unknown").length;
}

/** The entries of a run and, up to the fork step, those of its ancestors. */
function entriesOf(runs: Map<string, Run>, runId: string, afterSeq: number): StoredEntry[] {
  const found: StoredEntry[] = [];
  let limit = Number.POSITIVE_INFINITY;
  for (let run = runs.get(runId); run !== undefined; ) {
    const { forkOf, forkStep, id } = run.head;
    const first = forkOf === null ? -1 : forkStep!;
    for (const entry of run.entries.values()) {
      if (entry.step > first && entry.step <= limit && (id !== runId || entry.seq > afterSeq))
        found.push(entry);
    }
    limit = Math.min(limit, first);
    run = forkOf === null || afterSeq >= 0 ? undefined : runs.get(forkOf);
  }
  return found.sort((a, b) => a.step - b.step || a.kind.localeCompare(b.kind) || a.call - b.call);
}

function listRuns(runs: Map<string, Run>, query: JournalQuery): HeadRow[] {
  const { statuses, agentId, parentRunId, thread, queue, idPrefix = "", dueMs, limit } = query;
  const matches = (head: HeadRow) =>
    head.status !== "stub" &&
    (statuses === undefined || statuses.includes(head.status)) &&
    (agentId === undefined || head.agentId === agentId) &&
    (parentRunId === undefined || head.parentRunId === parentRunId) &&
    (thread === undefined || head.thread === thread) &&
    (queue === undefined || head.queue === queue) &&
    head.id.startsWith(idPrefix) &&
    (dueMs === undefined || (head.status === "waiting" && head.wakeMs !== null && head.wakeMs <= dueMs));
  return [...runs.values()]
    .map(({ head }) => head)
    .filter(matches)
    .reverse()
    .slice(0, limit);
}

function applyPrune(runs: Map<string, Run>, plan: JournalPrunePlan): void {
  const before = new Map([...runs].map(([id, run]) => [id, { ...run, entries: new Map(run.entries) }]));
  for (const { runId } of plan.remove) runs.delete(runId);
  for (const { runId, keepStep } of plan.stub) {
    const run = runs.get(runId)!;
    for (const [key, entry] of run.entries) if (entry.step > keepStep) run.entries.delete(key);
    setHead(run, { status: "stub", owner: null, leaseUntilMs: 0, epoch: run.head.epoch + 1 });
  }
  for (const { runId, step } of plan.prove) {
    const found = entriesOf(runs, runId, -1).filter(({ kind }) => kind === "response").length;
    if (found === step) continue;
    runs.clear();
    for (const [id, run] of before) runs.set(id, run);
    throw missingResponses(runId, found, step);
  }
}
