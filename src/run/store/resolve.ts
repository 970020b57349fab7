// Records a human's decision on an effect whose outcome is unknown.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { recordResolution } from "../log/history.ts";
import { parseEffectId } from "../model/ledger.ts";
import type { Effect, Json } from "../model/types.ts";
import { findRun, readEffects, refuseOwned, type StoreContext, timeOf } from "./context.ts";
import { changedMeanwhile } from "./prune.ts";
import { checkFormat, effectRow, runInfoOf } from "./row-codec.ts";
import type { EffectResolution } from "./store.ts";

const RESOLVED_STATES = { done: "done", retry: "prepared", fail: "failed" } as const;

/** Resolves one effect. Throws EFFECT_UNKNOWN, EFFECT_SETTLED, or RUN_BUSY while the run is owned or changing. */
export async function resolveEffect(
  context: StoreContext,
  id: string,
  resolution: EffectResolution,
): Promise<Effect> {
  const { backend, seal } = context;
  const found = await findEffect(context, id);
  if (found === undefined) {
    throw new LazarusError("EFFECT_UNKNOWN", `no effect ${JSON.stringify(id)} in ${backend.place}`, {
      hint: "lazarus runs show <run> lists the effects of a run",
    });
  }
  const { row, effect } = found;
  checkFormat(row);
  refuseOwned(context, row);
  // Check the key: an effect sealed with another key would make the run unreadable.
  runInfoOf(seal, row);
  if (effect.state !== "unknown" && effect.state !== "started") {
    throw new LazarusError("EFFECT_SETTLED", `effect ${id} is already ${effect.state}`, {
      hint: `lazarus runs show ${row.id}`,
    });
  }
  const { state, output, error } = await effectRow(seal, withResolution(effect, resolution), false);
  const { step, call } = effect;
  const nowMs = timeOf(context);
  const change = { runId: row.id, step, call, seenEpoch: row.epoch, nowMs, state, output, error };
  if (!(await backend.settleEffect(change))) throw changedMeanwhile(row.id, "resolved");
  crashPoint("run.resolve.settled");
  const settled = (await readEffects(context, row.id)).find((each) => each.id === id)!;
  await recordResolution(context, settled);
  return settled;
}

async function findEffect(context: StoreContext, id: string) {
  const parsed = parseEffectId(id);
  const row = parsed && (await findRun(context, parsed.runId));
  const effect = row && (await readEffects(context, row.id)).find((each) => each.id === id);
  return row && effect && { row, effect };
}

function withResolution(effect: Effect, resolution: EffectResolution): Effect {
  return {
    ...effect,
    state: RESOLVED_STATES[resolution.outcome],
    output: resolution.outcome === "done" ? ((resolution.output ?? null) as Json) : null,
    error: resolution.outcome === "fail" ? (resolution.reason ?? "marked as failed by a human") : null,
  };
}
