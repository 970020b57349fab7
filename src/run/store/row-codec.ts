// Converts between rows of text and the data of a run. Binary content in messages (images, files) is stored as base64.
// Refuses rows of a newer format. All text passes through the seal in both directions.
import type { ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { EFFECT_PLACES } from "../log/history.ts";
import type { Seal } from "../log/seal.ts";
import { effectId } from "../model/ledger.ts";
import type {
  Effect,
  Json,
  PhaseOutput,
  RunHead,
  RunInfo,
  RunStatus,
  TranscriptEntry,
} from "../model/types.ts";
import { type EffectRow, type MessageRow, type PhaseRow, ROW_FORMAT, type RunRow } from "./backend.ts";

const BYTES = "$bytes";

/** The names of stored texts, which the seal authenticates. Part of the stored format. */
export const PLACES = {
  info: (runId: string) => `run ${runId}, info`,
  output: (runId: string) => `run ${runId}, output`,
  error: (runId: string) => `run ${runId}, error`,
  message: (runId: string, seq: number) => `run ${runId}, message ${seq}`,
  effect: EFFECT_PLACES.output,
  effectError: EFFECT_PLACES.error,
  phase: (runId: string, position: number) => `run ${runId}, phase ${position}`,
} as const;

/** The head of a run, from its row. */
export function headOf(row: RunRow): RunHead {
  return {
    runId: row.id,
    agentId: row.agentId,
    parentRunId: row.parentRunId,
    status: row.status as RunStatus,
    step: row.step,
    phase: row.phase,
    messageCount: row.seq,
    epoch: row.epoch,
    owner: row.owner,
    leaseUntilMs: row.leaseUntilMs,
    deaths: row.deaths,
    forkOf: row.forkOf,
    forkStep: row.forkStep,
    redactions: row.redactions,
    usage: { inputTokens: row.inputTokens, outputTokens: row.outputTokens },
    createdAtMs: row.createdAtMs,
    updatedAtMs: row.updatedAtMs,
  };
}

/** Throws RUN_NEWER for a row of a newer format. */
export function checkFormat(row: RunRow): void {
  const why = newerFormat(row);
  if (why !== null) {
    throw new LazarusError("RUN_NEWER", why, {
      hint: "upgrade Lazarus on this machine: npm install lazarus@latest",
    });
  }
}

/** Why this version cannot read a row; null when it can. */
export function newerFormat(row: RunRow): string | null {
  if (row.format <= ROW_FORMAT) return null;
  return `run ${row.id} has format ${row.format}; this version of Lazarus reads formats up to ${ROW_FORMAT}`;
}

/** The error for a run with missing or inconsistent rows. */
export function damagedRun(runId: string, problem: string): LazarusError {
  return new LazarusError("RUN_DAMAGED", `run ${runId} ${problem}`, {
    hint: "restore the store from a checkpoint of its cell: lazarus checkpoints",
    details: { runId },
  });
}

/** The info of a run. Throws when it was sealed with another key. */
export function runInfoOf(seal: Seal, row: RunRow): RunInfo {
  const info = seal.open(PLACES.info(row.id), row.info);
  if (!isObject(info) || info.runId !== row.id) throw damagedRun(row.id, "has the info of another run");
  return info as unknown as RunInfo;
}

/** Messages as rows, and the number of secrets removed from each. */
export async function messageRows(
  seal: Seal,
  runId: string,
  fromSeq: number,
  entries: readonly TranscriptEntry[],
): Promise<{ rows: MessageRow[]; redactions: number[] }> {
  const sealed = await Promise.all(
    entries.map(({ message }, i) => seal.seal(PLACES.message(runId, fromSeq + i), encodeBytes(message))),
  );
  return {
    rows: entries.map(({ step, phase }, i) => ({ seq: fromSeq + i, step, phase, body: sealed[i]!.text })),
    redactions: sealed.map(({ redactions }) => redactions),
  };
}

/** `owner` is the run that the row belongs to: a fork's first messages belong to its ancestors. */
export function entryOf(seal: Seal, owner: string, row: MessageRow): TranscriptEntry {
  const value = decodeBytes(seal.open(PLACES.message(owner, row.seq), row.body));
  if (!isMessage(value)) throw damagedRun(owner, `has invalid data as message ${row.seq}`);
  return { step: row.step, phase: row.phase, message: value };
}

/** A ledger entry as a row. */
export async function effectRow(seal: Seal, effect: Effect, inputRedacted: boolean): Promise<EffectRow> {
  const { output, error, id } = effect;
  return {
    step: effect.step,
    call: effect.call,
    // The model chooses these; PostgreSQL text cannot hold a NUL character.
    callId: effect.callId.replaceAll("\u0000", "\ufffd"),
    tool: effect.tool.replaceAll("\u0000", "\ufffd"),
    class: effect.class,
    state: effect.state,
    attempts: effect.attempts,
    preparedAtMs: effect.preparedAtMs,
    startedAtMs: effect.startedAtMs,
    endedAtMs: effect.endedAtMs,
    output: output === null ? null : (await seal.seal(PLACES.effect(id), output)).text,
    error: error === null ? null : (await seal.seal(PLACES.effectError(id), error)).text,
    inputRedacted: effect.inputRedacted || inputRedacted,
  };
}

/** A ledger entry from its row. */
export function effectOf(seal: Seal, runId: string, row: EffectRow): Effect {
  const id = effectId(runId, row.step, row.call);
  if (!EFFECT_STATES.has(row.state) || !EFFECT_CLASSES.has(row.class)) {
    throw damagedRun(runId, `has an effect ${id} of class ${row.class} in state ${row.state}`);
  }
  return {
    id,
    runId,
    step: row.step,
    call: row.call,
    callId: row.callId,
    tool: row.tool,
    class: row.class,
    state: row.state,
    attempts: row.attempts,
    preparedAtMs: row.preparedAtMs,
    startedAtMs: row.startedAtMs,
    endedAtMs: row.endedAtMs,
    output: row.output === null ? null : (seal.open(PLACES.effect(id), row.output) as Json),
    error: row.error === null ? null : String(seal.open(PLACES.effectError(id), row.error)),
    inputRedacted: row.inputRedacted,
  };
}

/** A phase's output as a row. */
export async function phaseRow(seal: Seal, runId: string, phase: PhaseOutput): Promise<PhaseRow> {
  const { position, ...body } = phase;
  return { position, body: (await seal.seal(PLACES.phase(runId, position), body)).text };
}

/** A phase's output from its row. */
export function phaseOf(seal: Seal, runId: string, row: PhaseRow): PhaseOutput {
  const body = seal.open(PLACES.phase(runId, row.position), row.body);
  if (!isObject(body) || typeof body.name !== "string" || typeof body.output !== "string") {
    throw damagedRun(runId, `has invalid data as output of phase ${row.position}`);
  }
  return { position: row.position, name: body.name, output: body.output, fellBack: body.fellBack === true };
}

const ROLES: ReadonlySet<unknown> = new Set(["system", "user", "assistant", "tool"]);
const EFFECT_STATES: ReadonlySet<string> = new Set(["prepared", "started", "done", "failed", "unknown"]);
const EFFECT_CLASSES: ReadonlySet<string> = new Set(["read", "idempotent", "once", "reconcile"]);

function isMessage(value: unknown): value is ModelMessage {
  if (!isObject(value) || !ROLES.has(value.role)) return false;
  return typeof value.content === "string" || (Array.isArray(value.content) && value.content.every(isObject));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function encodeBytes(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Uint8Array) return { [BYTES]: Buffer.from(value).toString("base64") };
  if (value instanceof ArrayBuffer) return { [BYTES]: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(encodeBytes);
  if (typeof value !== "object" || value === null || value instanceof URL || value instanceof Date)
    return value;
  const fields = Object.entries(value).map(([key, each]) => [key, encodeBytes(each)] as const);
  // Data that looks like bytes is put into a list, which bytes never are.
  if (fields.length === 1 && fields[0]![0] === BYTES) return { [BYTES]: [fields[0]![1]] };
  return Object.fromEntries(fields);
}

function decodeBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decodeBytes);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [only] = entries;
  if (entries.length === 1 && only![0] === BYTES && typeof only![1] === "string") {
    return new Uint8Array(Buffer.from(only![1], "base64"));
  }
  if (entries.length === 1 && only![0] === BYTES && Array.isArray(only![1]) && only![1].length === 1) {
    return { [BYTES]: decodeBytes(only![1][0]) };
  }
  return Object.fromEntries(entries.map(([key, each]) => [key, decodeBytes(each)]));
}
