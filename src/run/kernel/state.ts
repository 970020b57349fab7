// A run in memory while it executes. Tracks which effects have changed since the last save, so that a checkpointer
// writes only those. No I/O and no decisions.
import { effectId } from "../model/ledger.ts";
import type { DanglingCall } from "../model/transcript.ts";
import type {
  Effect,
  EffectClass,
  PhaseOutput,
  RunInfo,
  RunRecord,
  TranscriptEntry,
  Usage,
} from "../model/types.ts";

/** The state of a run that is executing. */
export interface RunState {
  readonly info: RunInfo;
  readonly transcript: TranscriptEntry[];
  readonly phases: PhaseOutput[];
  readonly effects: Map<string, Effect>;
  /** Ids of effects that changed since the last save. */
  readonly dirtyEffects: Set<string>;
  step: number;
  phase: number;
  usage: Usage;
}

/** The state of a new run, which has only its input. */
export function createState(info: RunInfo, transcript: readonly TranscriptEntry[]): RunState {
  return {
    info,
    transcript: [...transcript],
    phases: [],
    effects: new Map(),
    dirtyEffects: new Set(),
    step: 0,
    phase: 0,
    usage: { inputTokens: 0, outputTokens: 0 },
  };
}

/** The state of a run loaded from a store. */
export function stateOf(record: RunRecord): RunState {
  return {
    ...createState(record.info, record.transcript),
    phases: [...record.phases],
    effects: new Map(record.effects.map((effect) => [effect.id, effect])),
    step: record.head.step,
    phase: record.head.phase,
    usage: record.head.usage,
  };
}

/** The phase of the input of an agent with phases: it precedes all of them. */
export const INPUT_PHASE = -1;

/** The conversation of the current phase; that of the first phase starts with the input. */
export function currentEntries(state: RunState): TranscriptEntry[] {
  const first = state.phase === 0;
  return state.transcript.filter(({ phase }) => phase === state.phase || (first && phase === INPUT_PHASE));
}

/** Appends a message at the current step and phase. */
export function appendMessage(state: RunState, message: TranscriptEntry["message"]): void {
  state.transcript.push({ step: state.step, phase: state.phase, message });
}

/** Replaces a ledger entry, to be written with the next save. */
export function putEffect(state: RunState, effect: Effect): void {
  state.effects.set(effect.id, effect);
  state.dirtyEffects.add(effect.id);
}

/** Adds a call to the ledger as prepared. A call that is in the ledger already keeps its entry. */
export function prepareEffect(
  state: RunState,
  call: DanglingCall,
  effectClass: EffectClass,
  nowMs: number,
): void {
  const id = effectId(state.info.runId, call.step, call.call);
  if (state.effects.has(id)) return;
  putEffect(state, {
    id,
    runId: state.info.runId,
    step: call.step,
    call: call.call,
    callId: call.callId,
    tool: call.tool,
    class: effectClass,
    state: "prepared",
    attempts: 0,
    preparedAtMs: nowMs,
    startedAtMs: null,
    endedAtMs: null,
    output: null,
    error: null,
    inputRedacted: false,
  });
}
