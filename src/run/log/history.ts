// The ledger of a run store inside a cell, and the effect history of its mission (INV-5). The store is restored with the cell,
// the history is not. Order: the end of an effect is in the history before it is in the store; its start is in the store
// first, whose lease decides who may write, and in the history before the tool is called. Reads are not recorded.
import type { KnownEffect } from "../../effects/fold.ts";
import type { EffectHistory } from "../../effects/history.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { Effect, Json, Lease } from "../model/types.ts";
import type { Seal } from "./seal.ts";

/** The history of the mission that a store belongs to. */
export interface StoreHistory {
  readonly history: EffectHistory;
  /** Path of the store, relative to the cell. */
  readonly inside: string;
}

/** The names of stored texts, which the seal authenticates. Part of the stored format. */
export const EFFECT_PLACES = {
  output: (id: string) => `effect ${id}, output`,
  error: (id: string) => `effect ${id}, error`,
} as const;

interface Context {
  readonly history: StoreHistory | undefined;
  readonly seal: Seal;
}

/** Longer results are not kept; the call is then known to have succeeded, without its result. */
const RESULT_LIMIT = 64 * 1024;

/** Records the effects that have ended, and those that turned out not to have been started. */
export async function recordEnds(
  { history, seal }: Context,
  lease: Lease,
  effects: readonly Effect[],
): Promise<void> {
  if (history === undefined) return;
  for (const effect of effects) {
    if (effect.class === "read" || effect.state === "started") continue;
    const line = lineOf(history, effect, lease.epoch);
    const known = history.history.find("run", line.id, line.digest);
    if (effect.state === "prepared") {
      if (known?.state === "started")
        history.history.append({ ...line, attempt: known.attempt, state: "withdrawn" });
    } else if (known?.state !== effect.state || known.attempt < effect.attempts) {
      const result = await sealResult(seal, effect.id, effect);
      history.history.append({ ...line, state: effect.state, result });
    }
  }
}

/** Records the effects that are about to start. Throws RUN_STALE_LEASE when another process has started one of them. */
export function recordStarts({ history }: Context, lease: Lease, effects: readonly Effect[]): void {
  if (history === undefined) return;
  for (const effect of effects) {
    if (effect.class === "read" || effect.state !== "started") continue;
    const line = lineOf(history, effect, lease.epoch);
    const known = history.history.find("run", line.id, line.digest);
    if (known?.state === "started" && known.attempt === effect.attempts) continue;
    const owner = { owner: lease.owner, epoch: lease.epoch };
    if (history.history.start({ ...line, owner })) continue;
    throw new LazarusError(
      "RUN_STALE_LEASE",
      `effect ${effect.id} was started by another process; nothing was called`,
      { hint: `lazarus runs show ${lease.runId}`, details: { effect: effect.id } },
    );
  }
}

/** Records a human's decision, after the store has accepted it. */
export async function recordResolution({ history, seal }: Context, effect: Effect): Promise<void> {
  if (history === undefined) return;
  const known = latestOf(history, effect);
  if (known === undefined) return;
  const { id, digest, attempt } = known;
  const state = effect.state === "prepared" ? "withdrawn" : effect.state === "done" ? "done" : "failed";
  const result = state === "withdrawn" ? undefined : await sealResult(seal, effect.id, effect);
  history.history.append({ source: "run", id, digest, attempt, state, result });
}

/**
 * The entry of a call according to the history, which may have more than a restored store: a call with the same
 * input that has ended keeps its end, and one that was started is no longer `prepared`. A call with a different input is
 * another effect, and gets its own key.
 */
export function recallEffect({ history, seal }: Context, effect: Effect): Effect {
  if (history === undefined) return effect;
  const { id, digest } = lineOf(history, effect, 0);
  // With its secrets redacted, the input of a stored call differs from the input that was used.
  const known =
    history.history.find("run", id, digest) ?? (effect.inputRedacted ? latestOf(history, effect) : undefined);
  if (known === undefined) return effect.attempts > 0 ? effect : withKey(effect, freshKey(history, effect));
  const attempts = Math.max(effect.attempts, known.attempt);
  const entry = withKey({ ...effect, attempts }, known.key);
  if (known.state === "withdrawn") return entry;
  const ended = known.state === "done" || known.state === "failed";
  return {
    ...entry,
    state: known.state,
    startedAtMs: known.startedMs,
    endedAtMs: ended ? known.timeMs : null,
    ...openResult(seal, effect.id, history.history.resultOf(known)),
  };
}

function withKey(effect: Effect, key: string | undefined): Effect {
  return key === undefined ? effect : { ...effect, key };
}

/** The idempotency key of an effect that was never started; undefined when its id is one. */
function freshKey(history: StoreHistory, effect: Effect): string | undefined {
  const { fork } = history.history.read();
  const others = effectsOf(history, effect).length;
  const again = others === 0 ? "" : `~${others + 1}`;
  const own = fork === undefined ? "" : `@${fork.identity}`;
  return again + own === "" ? undefined : `${effect.id}${again}${own}`;
}

/** Every input that the call with this id was started with. */
function effectsOf(history: StoreHistory, effect: Effect): KnownEffect[] {
  const { id } = lineOf(history, effect, 0);
  return [...history.history.read().effects.values()].filter(
    (known) => known.source === "run" && known.id === id && known.state !== "withdrawn",
  );
}

function latestOf(history: StoreHistory, effect: Effect): KnownEffect | undefined {
  return effectsOf(history, effect)
    .sort((a, b) => a.at - b.at)
    .at(-1);
}

function lineOf({ inside }: StoreHistory, effect: Effect, epoch: number) {
  return {
    source: "run",
    id: `${inside}:${effect.id}`,
    attempt: effect.attempts,
    digest: effect.inputDigest ?? "",
    name: effect.tool,
    where: effect.runId,
    epoch,
    ...(effect.key === undefined ? {} : { key: effect.key }),
  } as const;
}

async function sealResult(seal: Seal, id: string, { output, error }: Pick<Effect, "output" | "error">) {
  const sealed = async (place: string, value: Json | string | null) => {
    if (value === null) return {};
    const { text } = await seal.seal(place, value);
    return text.length > RESULT_LIMIT ? {} : { text };
  };
  return {
    output: (await sealed(EFFECT_PLACES.output(id), output)).text ?? null,
    error: (await sealed(EFFECT_PLACES.error(id), error)).text ?? null,
  };
}

/** A result that cannot be opened, for example with another key, counts as not recorded. */
function openResult(seal: Seal, id: string, result: unknown): Pick<Effect, "output" | "error"> {
  const { output, error } = (result ?? {}) as { output?: unknown; error?: unknown };
  const open = (place: string, text: unknown): Json | null => {
    try {
      return typeof text === "string" ? (seal.open(place, text) as Json) : null;
    } catch {
      return null;
    }
  };
  const reason = open(EFFECT_PLACES.error(id), error);
  return {
    output: open(EFFECT_PLACES.output(id), output),
    error: typeof reason === "string" ? reason : null,
  };
}
