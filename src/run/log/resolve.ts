// Records a human's decision on an effect whose outcome is unknown. The run can be resumed once none is unknown.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { parseEffectId } from "../model/ledger.ts";
import type { Effect, Json } from "../model/types.ts";
import { decodeValue, encodeValue } from "./codec.ts";
import { type EffectValue, type Entry, effectOf, sealEntry } from "./entry.ts";
import { recordResolution } from "./history.ts";
import { findHead, isHeld, type RunLog, readEntries, timeOf } from "./run-log.ts";

/** A human's decision. */
export type Resolution =
  | { readonly outcome: "done"; readonly output?: Json }
  | { readonly outcome: "retry" }
  | { readonly outcome: "fail"; readonly reason?: string };

/** Resolves one effect. Throws EFFECT_UNKNOWN, EFFECT_SETTLED, RUN_NOT_STORABLE, or RUN_BUSY while the run is executed or changing. */
export async function resolveEntry(log: RunLog, id: string, resolution: Resolution): Promise<Effect> {
  const parsed = parseEffectId(id);
  const head = parsed && (await findHead(log, parsed.runId));
  const entry =
    head &&
    (await readEntries(log, head.id)).find(
      ({ kind, step, call }) => kind === "effect" && step === parsed.step && call === parsed.call,
    );
  if (head === undefined || entry === undefined) {
    throw new LazarusError("EFFECT_UNKNOWN", `no effect ${JSON.stringify(id)} in ${log.journal.place}`, {
      hint: "lazarus runs show <run>, to list the effects of a run",
    });
  }
  if (head.status === "running" && isHeld(log, head)) throw busy(head.id, `is owned by ${head.owner}`);
  if (entry.state !== "unknown" && entry.state !== "started") {
    throw new LazarusError("EFFECT_SETTLED", `effect ${id} is already ${entry.state}`, {
      hint: `lazarus runs show ${head.id}`,
    });
  }
  const nowMs = timeOf(log);
  const decided = decide(entry, resolution, nowMs);
  const { row } = await sealEntry(log.seal, head.id, decided);
  if (!(await log.journal.settle({ runId: head.id, seenEpoch: head.epoch, entry: row, nowMs }))) {
    throw busy(head.id, "has changed in the meantime; nothing was resolved");
  }
  crashPoint("engine.resolve.settled");
  const effect = effectOf(head.id, decided);
  await recordResolution(log, effect);
  return effect;
}

/** The entry after a decision. A retried call runs again, including its interrupted steps. Pure. */
function decide(entry: Entry, resolution: Resolution, nowMs: number): Entry {
  const { key } = (entry.value ?? {}) as EffectValue;
  const kept = key === undefined ? {} : { key };
  switch (resolution.outcome) {
    case "done": {
      const output = resolution.output === undefined ? undefined : decodeValue(resolution.output);
      encodeValue(output, "output");
      const told = output ?? "The call succeeded; its result was not recorded.";
      return { ...entry, state: "done", endedMs: nowMs, value: { output: told, ...kept } };
    }
    case "retry":
      return { ...entry, state: "prepared", value: { retried: true, ...kept } };
    case "fail": {
      const error = resolution.reason ?? "marked as failed by a human";
      return { ...entry, state: "failed", endedMs: nowMs, value: { error, ...kept } };
    }
  }
}

function busy(runId: string, problem: string): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} ${problem}`, {
    hint: "stop its process or wait until its lease ends, then run the same command again",
  });
}
