// A run store on any backend: checks, redacts and seals on the way in, opens and checks on the way out, and turns the
// backend's verdicts into the house's errors. Decisions are those of lease.ts, ledger.ts and retention.ts.
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { parseEffectId } from "../model/ledger.ts";
import { createRunId } from "../model/run-id.ts";
import type { Effect, Json, Lease, RunInfo, RunRecord, StoredError } from "../model/types.ts";
import { type PhaseRow, ROW_FORMAT, type RunBackend, type RunRow, type StepWrite } from "./backend.ts";
import { forkAt, lastStepOf } from "./fork.ts";
import { DEFAULT_LEASE_MS, isOwnerDead, judgeLease, LONGEST_LEASE_MS, ownerName } from "./lease.ts";
import { changedHands, pruneRuns } from "./prune.ts";
import { readTranscript, unknownRun } from "./read-transcript.ts";
import { choosePrunable } from "./retention.ts";
import {
  checkFormat,
  effectOf,
  effectRow,
  headOf,
  messageRows,
  newerFormat,
  PLACES,
  phaseOf,
  phaseRow,
  runInfoOf,
} from "./row-codec.ts";
import { createSeal, type SealOptions } from "./seal.ts";
import type { InterruptedRun, RunChange, RunClosing, RunStore, SaveReceipt } from "./store.ts";
import { writeRefusal } from "./verdict.ts";

/** How a store treats secrets and leases, and on which machine it runs. */
export interface RunStoreOptions extends SealOptions {
  readonly machine?: Machine;
  /** How long this process owns a run without a word; every save renews it. 30 s unless told. */
  readonly leaseMs?: number;
}

/** Puts the run store's contract on a backend. */
export function createRunStore(backend: RunBackend, options: RunStoreOptions = {}): RunStore {
  const machine = options.machine ?? systemMachine;
  const leaseMs = Math.ceil(options.leaseMs ?? DEFAULT_LEASE_MS);
  if (!(leaseMs > 0 && leaseMs <= LONGEST_LEASE_MS)) {
    throw new LazarusError("USAGE", `leaseMs is ${leaseMs}`, {
      hint: "use milliseconds above 0, a day at most",
    });
  }
  const seal = createSeal(machine.ids, options);
  const nowMs = () => Math.floor(machine.clock.nowMs());
  const owner = ownerName(machine.processes);

  const findRow = async (runId: string): Promise<RunRow | undefined> => {
    const row = await backend.readRun(runId);
    return row === undefined || row.status === "stub" ? undefined : row;
  };
  const existing = async (runId: string): Promise<RunRow> => {
    const row = await findRow(runId);
    if (row !== undefined) return row;
    throw unknownRun(runId, backend.place);
  };
  const verdictOnLease = (row: RunRow) =>
    judgeLease(
      row,
      nowMs(),
      row.owner !== null && row.owner !== owner && isOwnerDead(machine.processes, row.owner),
    );
  const refuseOwned = (row: RunRow) => {
    if (row.status !== "running" || verdictOnLease(row) !== "held") return;
    throw new LazarusError("RUN_BUSY", `run ${row.id} is being worked on by ${row.owner}`, {
      hint: "stop that process, or wait until its lease ends",
    });
  };
  const readEntries = (row: RunRow, fromCount = 0) => readTranscript(backend, seal, row, fromCount);
  const infoOf = (row: RunRow): RunInfo => runInfoOf(seal, row);
  const readEffects = async (runId: string): Promise<Effect[]> =>
    (await backend.readEffects(runId)).map((each) => effectOf(seal, runId, each));

  const write = async (lease: Lease, change: RunChange, closing?: RunClosing): Promise<SaveReceipt> => {
    const { rows: messages, redactions } = await messageRows(
      seal,
      lease.runId,
      change.fromCount,
      change.messages,
    );
    // What the model asked for stands in its own message; what tools answered makes no input unrepeatable.
    const dirtySteps = new Set(
      change.messages.flatMap(({ step, message }, i) =>
        message.role === "assistant" && redactions[i]! > 0 ? [step] : [],
      ),
    );
    const redactedInputs = (change.effects ?? []).filter(
      ({ step, state }) => state !== "done" && state !== "failed" && dirtySteps.has(step),
    );
    let redacted = redactions.reduce((sum, each) => sum + each, 0);
    const sealText = async (where: string, value: string | StoredError | null) => {
      if (value === null) return null;
      const sealed = await seal.seal(where, value);
      redacted += sealed.redactions;
      return sealed.text;
    };
    const ended = closing !== undefined && closing.status !== "interrupted";
    const output = ended && "output" in closing ? closing.output : null;
    const sealedOutput = await sealText(PLACES.output(lease.runId), output);
    const sealedError = await sealText(PLACES.error(lease.runId), ended ? closing.error : null);
    const step: StepWrite = {
      runId: lease.runId,
      epoch: lease.epoch,
      nowMs: nowMs(),
      leaseUntilMs: closing === undefined ? nowMs() + leaseMs : 0,
      fromSeq: change.fromCount,
      messages,
      step: change.step,
      phase: change.phase,
      effects: await Promise.all(
        (change.effects ?? []).map((effect) => effectRow(seal, effect, redactedInputs.includes(effect))),
      ),
      phases: await Promise.all((change.phases ?? []).map((phase) => phaseRow(seal, lease.runId, phase))),
      redactions: redacted,
      inputTokens: change.usage.inputTokens,
      outputTokens: change.usage.outputTokens,
      status: ended ? closing.status : "running",
      output: sealedOutput,
      error: sealedError,
    };
    const verdict = await backend.write(step);
    if (verdict === "written") {
      return { redactions: step.redactions, redactedInputs: redactedInputs.map(({ id }) => id) };
    }
    throw writeRefusal(verdict, lease, backend.place);
  };

  const store: RunStore = {
    kind: backend.kind,
    place: backend.place,
    survives: backend.survives,
    leaseMs,
    async begin(info, entries) {
      const { rows, redactions } = await messageRows(seal, info.runId, 0, entries);
      const sealedInfo = await seal.seal(PLACES.info(info.runId), info);
      const now = nowMs();
      const row: RunRow = {
        ...{
          id: info.runId,
          agentId: info.agentId,
          parentRunId: info.parentRunId,
          status: "running",
          epoch: 1,
        },
        ...{
          owner,
          leaseUntilMs: now + leaseMs,
          deaths: 0,
          seq: rows.length,
          step: 0,
          phase: 0,
          info: sealedInfo.text,
        },
        ...{
          output: null,
          error: null,
          forkOf: null,
          forkSeq: 0,
          forkStep: null,
          inputTokens: 0,
          outputTokens: 0,
        },
        redactions: redactions.reduce((sum, each) => sum + each, 0) + sealedInfo.redactions,
        ...{ format: ROW_FORMAT, createdMs: now, updatedMs: now },
      };
      if (!(await backend.insert(row, rows, []))) {
        throw new LazarusError("RUN_ID_TAKEN", `there is a run ${info.runId} already in ${backend.place}`, {
          hint: `lazarus runs show ${info.runId}`,
        });
      }
      return { runId: info.runId, epoch: 1, owner, redactions: row.redactions };
    },
    save: (lease, change) => write(lease, change),
    close: (lease, change, closing) => write(lease, change, closing),
    async load(runId): Promise<RunRecord | undefined> {
      const row = await findRow(runId);
      if (row === undefined) return undefined;
      checkFormat(row);
      // Together: on a server each of them is a round trip.
      const [transcript, phases, effects] = await Promise.all([
        readEntries(row).catch((error) => {
          if (error instanceof LazarusError && error.code === "RUN_UNKNOWN") return undefined;
          throw error;
        }),
        backend.readPhases(runId),
        readEffects(runId),
      ]);
      if (transcript === undefined) return undefined;
      return {
        head: headOf(row),
        info: infoOf(row),
        transcript,
        phases: phases.map((each) => phaseOf(seal, runId, each)),
        effects,
        output: row.output === null ? null : String(seal.open(PLACES.output(runId), row.output)),
        error: row.error === null ? null : (seal.open(PLACES.error(runId), row.error) as StoredError),
      };
    },
    async head(runId) {
      const row = await findRow(runId);
      return row === undefined ? undefined : headOf(row);
    },
    async list(query = {}) {
      return (await backend.listRuns(query)).map(headOf);
    },
    effects: readEffects,
    async history(runId, fromCount = 0) {
      const row = await existing(runId);
      checkFormat(row);
      return readEntries(row, fromCount);
    },
    async listInterrupted(): Promise<InterruptedRun[]> {
      const rows = await backend.listRuns({ statuses: ["running"] });
      return rows
        .filter((row) => verdictOnLease(row) !== "held")
        .reverse()
        .map((row) => ({ head: headOf(row), blocked: newerFormat(row) }));
    },
    async claim(runId) {
      const row = await findRow(runId);
      if (row === undefined || row.status !== "running" || verdictOnLease(row) === "held") return undefined;
      checkFormat(row);
      const now = nowMs();
      const won = await backend.swapLease({
        ...{ runId, owner, seenEpoch: row.epoch, leaseUntilMs: now + leaseMs, nowMs: now },
      });
      return won ? { runId, epoch: row.epoch + 1, owner } : undefined;
    },
    renew: (lease) => backend.renewLease(lease.runId, lease.epoch, nowMs() + leaseMs),
    async release(lease) {
      await backend.releaseLease(lease.runId, lease.epoch);
    },
    async resolve(id, resolution) {
      const place = parseEffectId(id);
      const row = place && (await findRow(place.runId));
      const effect = place && (await readEffects(place.runId)).find((each) => each.id === id);
      if (place === undefined || row === undefined || effect === undefined) {
        throw new LazarusError(
          "EFFECT_UNKNOWN",
          `there is no effect ${JSON.stringify(id)} in ${backend.place}`,
          {
            hint: "lazarus runs show <run> lists the effects of a run",
          },
        );
      }
      checkFormat(row);
      refuseOwned(row);
      // A word that is sealed otherwise than the rest of the run would make it unreadable.
      infoOf(row);
      if (effect.state !== "unknown" && effect.state !== "started") {
        throw new LazarusError(
          "EFFECT_SETTLED",
          `effect ${id} is ${effect.state}: there is nothing to resolve`,
          {
            hint: `lazarus runs show ${place.runId}`,
          },
        );
      }
      const settled: Effect = {
        ...effect,
        state: ({ done: "done", retry: "prepared", fail: "failed" } as const)[resolution.outcome],
        output: resolution.outcome === "done" ? ((resolution.output ?? null) as Json) : null,
        error:
          resolution.outcome === "fail"
            ? (resolution.reason ?? "a person said that it did not happen")
            : null,
      };
      const sealed = await effectRow(seal, settled, false);
      const { state, output, error } = sealed;
      const won = await backend.settleEffect({
        ...{ runId: place.runId, step: place.step, call: place.call, seenEpoch: row.epoch, nowMs: nowMs() },
        ...{ state, output, error },
      });
      if (!won) {
        throw changedHands(place.runId, "resolved");
      }
      return (await readEffects(place.runId)).find((each) => each.id === id)!;
    },
    async fork(runId, step) {
      const row = await existing(runId);
      checkFormat(row);
      const entries = await readEntries(row);
      const cut = forkAt(entries, step);
      if (!cut.ok) {
        const last = lastStepOf(entries);
        throw new LazarusError(
          "RUN_STEP_UNKNOWN",
          `run ${runId} cannot be forked at step ${step}: ${cut.why}`,
          {
            hint: last < 0 ? `lazarus runs show ${runId}` : `its last whole step is ${last}: --at ${last}`,
          },
        );
      }
      const id = createRunId(machine, nowMs());
      const info = { ...infoOf(row), runId: id, parentRunId: runId };
      const phases: PhaseRow[] = [];
      for (const each of await backend.readPhases(runId)) {
        if (each.position < cut.phase) phases.push(await phaseRow(seal, id, phaseOf(seal, runId, each)));
      }
      const now = nowMs();
      const fork: RunRow = {
        ...{
          id,
          agentId: row.agentId,
          parentRunId: runId,
          status: "running",
          epoch: 0,
          owner: null,
          leaseUntilMs: 0,
          deaths: 0,
        },
        ...{ seq: cut.count, step, phase: cut.phase, info: (await seal.seal(PLACES.info(id), info)).text },
        ...{ output: null, error: null, forkOf: runId, forkSeq: cut.count, forkStep: step, redactions: 0 },
        ...{ inputTokens: 0, outputTokens: 0, format: ROW_FORMAT, createdMs: now, updatedMs: now },
      };
      if (!(await backend.insert(fork, [], phases))) {
        throw unknownRun(runId, backend.place);
      }
      return headOf(fork);
    },
    async delete(runId) {
      const row = await findRow(runId);
      if (row === undefined) return false;
      checkFormat(row);
      refuseOwned(row);
      const { removed } = await pruneRuns(backend, (lineage) => {
        const now = lineage.find(({ id, status }) => id === runId && status !== "stub");
        if (now !== undefined && now.epoch !== row.epoch) throw changedHands(runId, "deleted");
        return now === undefined ? [] : [runId];
      });
      return removed.length > 0;
    },
    prune: (policy) => pruneRuns(backend, (lineage) => choosePrunable(lineage, policy, nowMs())),
    sizeBytes: () => backend.sizeBytes(),
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };

  return store;
}
