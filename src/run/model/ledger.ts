// The rules of the ledger as pure functions: effect ids, and what to do with a call that has no result (INV-5). Never runs a
// tool or writes a row.
import { sha256Hex } from "../../platform/sha256.ts";
import type { Effect, EffectClass } from "./types.ts";

/** The effect's id, which is also the tool's idempotency key. */
export function effectId(runId: string, step: number, call: number): string {
  return `${runId}.${step}.${call}`;
}

/** Parses an effect id; undefined when it is not one. */
export function parseEffectId(id: string): { runId: string; step: number; call: number } | undefined {
  const match = /^(.+)\.(\d{1,9})\.(\d{1,9})$/.exec(id);
  if (match === null) return undefined;
  return { runId: match[1]!, step: Number(match[2]), call: Number(match[3]) };
}

/** Two calls with the same digest are the same call; an input that is not JSON has none. */
export function inputDigest(input: unknown): string {
  try {
    return sha256Hex(jsonOf(input));
  } catch {
    return "";
  }
}

function jsonOf(input: unknown): string {
  try {
    return JSON.stringify(input) ?? "";
  } catch {
    // A replacer takes several times as long, so it is only used for values with a bigint.
    return JSON.stringify(input, (_, value) => (typeof value === "bigint" ? String(value) : value)) ?? "";
  }
}

/**
 * What to do with a call that has no result: `run` it, `reconcile` it with its tool, `park` the run for a human, or
 * `answer` the model from the ledger.
 */
export type CallVerdict =
  | { readonly action: "run" }
  | { readonly action: "reconcile" }
  | { readonly action: "park"; readonly reason: string }
  | { readonly action: "answer"; readonly how: "done" | "failed" | "not-run"; readonly text: string };

/**
 * Decides what to do with a call that has no result. `effect` is its ledger entry, if any; `declared` is the class that
 * the tool declares now, undefined when the agent no longer has the tool.
 */
export function verdictOnCall(effect: Effect | undefined, declared: EffectClass | undefined): CallVerdict {
  if (effect?.state === "done") return { action: "answer", how: "done", text: "" };
  if (effect?.state === "failed") {
    return { action: "answer", how: "failed", text: effect.error ?? "the call failed" };
  }
  // Entries are written ahead: without one, or only prepared, the call never started, or a human chose to retry it.
  const didNotHappen = effect === undefined || effect.state === "prepared";
  if (declared === undefined) {
    if (didNotHappen) {
      return { action: "answer", how: "not-run", text: "no such tool; the call was not made" };
    }
    return { action: "park", reason: "its outcome is unknown and the agent no longer has this tool" };
  }
  if (effect?.inputRedacted) {
    const text =
      "the input contained a secret, which is not stored; the call was not made: repeat it if it is still needed";
    if (didNotHappen || effect.class === "read") return { action: "answer", how: "not-run", text };
    return {
      action: "park",
      reason: "its outcome is unknown and its input contained a secret, which is not stored",
    };
  }
  if (didNotHappen) return { action: "run" };
  // Started or unknown. The class at the time of the call decides, not what a newer agent declares.
  switch (effect.class) {
    case "read":
    case "nested":
    case "idempotent":
      return { action: "run" };
    case "reconcile":
      return declared === "reconcile"
        ? { action: "reconcile" }
        : { action: "park", reason: "its outcome is unknown and its tool can no longer reconcile" };
    case "once":
      return { action: "park", reason: knownReason(effect) ?? "it was started and its outcome is unknown" };
  }
}

/** What the tool said, or what an earlier resume found. */
function knownReason({ state, error }: Effect): string | null {
  return state === "unknown" ? error : null;
}
