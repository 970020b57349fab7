// Runs in memory: the reference that the other backends are tested against. It follows every rule they follow, but its
// runs end with the process.
import type {
  EffectRow,
  LineageRow,
  MessageRow,
  PhaseRow,
  PrunePlan,
  RunBackend,
  RunRow,
  StepWrite,
  WriteVerdict,
} from "../store/backend.ts";
import { unloadable } from "../store/prune.ts";
import { diagnoseWrite } from "../store/verdict.ts";

interface Entry {
  row: RunRow;
  messages: MessageRow[];
  effects: Map<string, EffectRow>;
  phases: Map<number, PhaseRow>;
}

/** Creates an empty backend in memory. */
export function createMemoryBackend(): RunBackend {
  const entries = new Map<string, Entry>();
  const isForkable = ({ forkOf, forkSeq }: RunRow) => {
    const parent = forkOf === null ? undefined : entries.get(forkOf)?.row;
    return forkOf === null || (parent !== undefined && parent.status !== "stub" && parent.seq >= forkSeq);
  };
  return {
    kind: "memory",
    place: "memory",
    survives: false,
    async insert(row, messages, phases) {
      if (entries.has(row.id) || !isForkable(row)) return false;
      entries.set(row.id, {
        row,
        messages: [...messages],
        effects: new Map(),
        phases: new Map(phases.map((phase) => [phase.position, phase])),
      });
      return true;
    },
    write: async (write) => writeStep(entries.get(write.runId), write),
    async readRun(runId) {
      return entries.get(runId)?.row;
    },
    async readMessages(runId) {
      return messagesOf(entries, runId);
    },
    async readEffects(runId) {
      const rows = [...(entries.get(runId)?.effects.values() ?? [])];
      return rows.sort((a, b) => a.step - b.step || a.call - b.call);
    },
    async readPhases(runId) {
      const rows = [...(entries.get(runId)?.phases.values() ?? [])];
      return rows.sort((a, b) => a.position - b.position);
    },
    async listRuns({ statuses, agentId, limit }) {
      return [...entries.values()]
        .map(({ row }) => row)
        .filter(({ status }) => status !== "stub")
        .filter((row) => statuses === undefined || statuses.some((status) => status === row.status))
        .filter((row) => agentId === undefined || row.agentId === agentId)
        .reverse()
        .slice(0, limit ?? Number.POSITIVE_INFINITY);
    },
    async swapLease({ runId, seenEpoch, owner, leaseUntilMs, nowMs }) {
      const entry = entries.get(runId);
      if (entry?.row.epoch !== seenEpoch || entry.row.status !== "running") return false;
      const deaths = entry.row.deaths + 1;
      entry.row = { ...entry.row, epoch: seenEpoch + 1, owner, leaseUntilMs, updatedAtMs: nowMs, deaths };
      return true;
    },
    async renewLease(runId, epoch, leaseUntilMs) {
      const entry = entries.get(runId);
      if (entry?.row.epoch !== epoch || entry.row.status !== "running") return false;
      entry.row = { ...entry.row, leaseUntilMs };
      return true;
    },
    async releaseLease(runId, epoch) {
      const entry = entries.get(runId);
      if (entry?.row.epoch !== epoch) return false;
      entry.row = { ...entry.row, leaseUntilMs: 0, owner: null, deaths: 0 };
      return true;
    },
    async settleEffect({ runId, step, call, seenEpoch, state, output, error, nowMs }) {
      const entry = entries.get(runId);
      const effect = entry?.effects.get(`${step}.${call}`);
      if (entry?.row.epoch !== seenEpoch || effect === undefined) return false;
      const endedAtMs = state === "prepared" ? null : nowMs;
      entry.effects.set(`${step}.${call}`, { ...effect, state, output, error, endedAtMs });
      entry.row = { ...entry.row, epoch: seenEpoch + 1, updatedAtMs: nowMs, deaths: 0 };
      if (entry.row.status === "needs-human" && countUnknown(entry) === 0) {
        entry.row = { ...entry.row, status: "running", owner: null, leaseUntilMs: 0 };
      }
      return true;
    },
    async prune(decide) {
      const plan = decide([...entries.values()].map(lineageOf));
      applyPrune(entries, plan);
      return plan;
    },
    async sizeBytes() {
      return 0;
    },
    async [Symbol.asyncDispose]() {
      entries.clear();
    },
  };
}

function writeStep(entry: Entry | undefined, write: StepWrite): WriteVerdict {
  const row = entry?.row;
  const fits =
    row !== undefined && row.epoch === write.epoch && row.seq === write.fromSeq && row.status === "running";
  if (!fits || entry === undefined) {
    const last = write.messages.at(-1);
    return diagnoseWrite(row, write, entry?.messages.find(({ seq }) => seq === last?.seq)?.body);
  }
  entry.messages.push(...write.messages);
  for (const effect of write.effects) {
    const name = `${effect.step}.${effect.call}`;
    const inputRedacted = entry.effects.get(name)?.inputRedacted ?? effect.inputRedacted;
    entry.effects.set(name, { ...effect, inputRedacted });
  }
  for (const phase of write.phases) entry.phases.set(phase.position, phase);
  const { status, step, phase, leaseUntilMs, output, error, inputTokens, outputTokens } = write;
  entry.row = {
    ...entry.row,
    ...{ status, step, phase, leaseUntilMs, output, error, inputTokens, outputTokens },
    seq: write.fromSeq + write.messages.length,
    owner: leaseUntilMs === 0 ? null : entry.row.owner,
    deaths: write.messages.length > 0 || leaseUntilMs === 0 ? 0 : entry.row.deaths,
    redactions: entry.row.redactions + write.redactions,
    updatedAtMs: write.nowMs,
  };
  return "written";
}

function applyPrune(entries: Map<string, Entry>, plan: PrunePlan): void {
  const before = new Map([...entries].map(([id, entry]) => [id, { ...entry }]));
  for (const { runId, keepSeq } of plan.stub) {
    const entry = entries.get(runId)!;
    entries.set(runId, {
      row: { ...entry.row, status: "stub", owner: null, leaseUntilMs: 0, epoch: entry.row.epoch + 1 },
      messages: entry.messages.filter(({ seq }) => seq < keepSeq),
      effects: new Map(),
      phases: new Map(),
    });
  }
  for (const { runId } of plan.remove) entries.delete(runId);
  for (const { runId, seq } of plan.prove) {
    const found = messagesOf(entries, runId).length;
    if (found === seq) continue;
    entries.clear();
    for (const [id, entry] of before) entries.set(id, entry);
    throw unloadable(runId, found, seq);
  }
}

function messagesOf(entries: ReadonlyMap<string, Entry>, runId: string): MessageRow[] {
  const entry = entries.get(runId);
  if (entry === undefined) return [];
  const { forkOf, forkSeq } = entry.row;
  const inherited = forkOf === null ? [] : messagesOf(entries, forkOf).filter(({ seq }) => seq < forkSeq);
  return [...inherited, ...entry.messages.filter(({ seq }) => seq < entry.row.seq)];
}

function lineageOf(entry: Entry): LineageRow {
  const { id, status, epoch, seq, updatedAtMs, forkOf, forkSeq, format } = entry.row;
  const unknownEffects = countUnknown(entry);
  return { id, status, epoch, seq, updatedAtMs, forkOf, forkSeq, format, unknownEffects };
}

function countUnknown({ effects }: Entry): number {
  return [...effects.values()].filter(({ state }) => state === "unknown").length;
}
