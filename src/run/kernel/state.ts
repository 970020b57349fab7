// A run in memory while it is worked on. It remembers what has changed since the last save, so that a checkpointer
// writes only that. No I/O and no decisions.

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

/** A run while it is worked on. */
export interface RunState {
  readonly info: RunInfo;
  readonly transcript: TranscriptEntry[];
  readonly phases: PhaseOutput[];
  readonly effects: Map<string, Effect>;
  /** Ids of effects that the store does not have in this form yet. */
  readonly dirtyEffects: Set<string>;
  step: number;
  phase: number;
  usage: Usage;
}

/** A new run that has only its input. */
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

/** A loaded run, to go on with. */
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

/** Where the input of an agent with phases stands: before all of them. */
export const INPUT_PHASE = -1;

/** The conversation of the phase that is being worked on; the first one begins with the input. */
export function currentEntries(state: RunState): TranscriptEntry[] {
  const first = state.phase === 0;
  return state.transcript.filter(({ phase }) => phase === state.phase || (first && phase === INPUT_PHASE));
}

/** Adds a message at the current step and phase. */
export function say(state: RunState, message: TranscriptEntry["message"]): void {
  state.transcript.push({ step: state.step, phase: state.phase, message });
}

/** Enters a ledger line, to be written with the next save. */
export function putEffect(state: RunState, effect: Effect): void {
  state.effects.set(effect.id, effect);
  state.dirtyEffects.add(effect.id);
}

/** Enters a call in the ledger as prepared, unless it is there. */
export function prepareEffect(
  state: RunState,
  call: DanglingCall,
  effectClass: EffectClass,
  nowMs: number,
): Effect {
  const id = effectId(state.info.runId, call.step, call.call);
  const known = state.effects.get(id);
  if (known !== undefined) return known;
  const effect: Effect = {
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
  };
  putEffect(state, effect);
  return effect;
}
