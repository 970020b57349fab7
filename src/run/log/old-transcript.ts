// Runs of the first format, whose rows were moved into entries unchanged: one entry `transcript` for each message, with its
// position as `call`, and effects and phases with the texts of that time. They are sealed under their old names, so moving
// them needed no key. Reading turns them into the entries that the engine replays. Pure.
import type { ModelMessage } from "ai";
import type { StoredEntry } from "../journal/journal.ts";
import { effectId } from "../model/ledger.ts";
import { type EffectValue, type Entry, entryOf, keyOf } from "./entry.ts";
import { EFFECT_PLACES } from "./history.ts";
import type { Seal } from "./seal.ts";

/** A message of an old run. */
interface OldMessage {
  readonly step: number;
  readonly phase: number;
  readonly position: number;
  readonly message: ModelMessage;
}

interface Part {
  readonly type: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  readonly text?: string;
  readonly output?: { readonly type: string; readonly value?: unknown };
  readonly providerExecuted?: boolean;
  readonly providerOptions?: unknown;
  readonly mediaType?: string;
  readonly data?: unknown;
}

/** Marks the body of an effect that holds the two texts of an old one, and the name of an old phase. */
export const OLD = "v1";
/** The phase of the input of an agent with phases. */
const INPUT_PHASE = -1;

/** The value of an old row, or undefined for a row of the current format. */
export function openOldRow(seal: Seal, row: StoredEntry): { value: unknown } | undefined {
  const { runId, kind, call, body } = row;
  if (body === null) return undefined;
  if (kind === "transcript") {
    const message = decodeBytes(seal.open(`run ${runId}, message ${call}`, body));
    return { value: message };
  }
  if (kind === "phase" && row.name === OLD) return { value: seal.open(`run ${runId}, phase ${call}`, body) };
  if (kind !== "effect" || !body.startsWith(`{"${OLD}"`)) return undefined;
  const { output, error } = (JSON.parse(body) as { v1: { output: string | null; error: string | null } })[
    OLD
  ];
  const id = effectId(runId, row.step, call);
  return {
    value: {
      ...(output === null ? {} : { output: seal.open(EFFECT_PLACES.output(id), output) }),
      ...(error === null ? {} : { error: String(seal.open(EFFECT_PLACES.error(id), error)) }),
    },
  };
}

/** Entries with the messages of an old run replaced by what the engine replays. */
export function upgradeEntries(entries: readonly Entry[]): Entry[] {
  const old = entries
    .filter(({ kind }) => kind === "transcript")
    .map(({ step, call, name, value }): OldMessage => {
      return { step, phase: Number(name), position: call, message: value as ModelMessage };
    })
    .sort((a, b) => a.position - b.position);
  if (old.length === 0) return [...entries];
  const steps = answeredSteps(old);
  const known = new Map(entries.map((entry) => [keyOf(entry.step, entry.kind, entry.call), entry]));
  const made = [...inputs(old), ...responses(steps), ...nudges(old), ...effects(steps, known)];
  const replaced = new Set(made.map(({ step, kind, call }) => keyOf(step, kind, call)));
  const kept = entries.filter(
    ({ kind, step, call }) => kind !== "transcript" && !replaced.has(keyOf(step, kind, call)),
  );
  return [...made, ...withoutCopies(kept)];
}

/** A fork has copies of the phases that it shares. */
function withoutCopies(entries: readonly Entry[]): Entry[] {
  return entries.filter(
    ({ kind, call }, i) =>
      kind !== "phase" || !entries.slice(i + 1).some((each) => each.kind === kind && each.call === call),
  );
}

/** The messages of a phase before its first answer: its input. */
function opening(old: readonly OldMessage[], phase: number): OldMessage[] {
  const own = old.filter((each) => each.phase === phase);
  const first = own.findIndex(({ step, message }) => step > own[0]!.step && message.role === "assistant");
  return first < 0 ? own : own.slice(0, first);
}

function inputs(old: readonly OldMessage[]): Entry[] {
  const given = old.filter(({ phase }) => phase === INPUT_PHASE);
  const phases = [...new Set(old.map(({ phase }) => phase))].filter((phase) => phase !== INPUT_PHASE);
  const isPhased = given.length > 0;
  const begun = phases.map((phase) => {
    const own = opening(old, phase);
    const messages = [...(phase === 0 ? given : []), ...own].map(({ message }) => message);
    const input = { mode: "generate", call: { messages }, phase };
    const more = isPhased && phase === 0 ? { given: given.length } : {};
    return entryOf({ step: own[0]!.step, kind: "input", call: phase }, { input: { ...input, ...more } });
  });
  if (!isPhased || phases.includes(0)) return begun;
  const messages = given.map(({ message }) => message);
  const input = { mode: "generate", call: { messages }, phase: INPUT_PHASE };
  return [entryOf({ step: 0, kind: "input", call: 0 }, { input }), ...begun];
}

function responses(steps: Steps): Entry[] {
  return [...steps].map(([step, messages]) => {
    const content = answersIn(messages).flatMap(itemOf);
    const calls = content.some(({ type }) => type === "tool-call");
    const result = {
      content,
      finishReason: { unified: calls ? "tool-calls" : "stop", raw: undefined },
      usage: { inputTokens: { total: 0 }, outputTokens: { total: 0 } },
      warnings: [],
      response: { id: `old-${step}`, timestamp: new Date(0), modelId: OLD },
    };
    return entryOf({ step, kind: "response", call: 0 }, { provider: "lazarus", modelId: OLD, result });
  });
}

/** Messages that a watchdog sent: in a phase, after its first answer. */
function nudges(old: readonly OldMessage[]): Entry[] {
  const openings = new Set(
    [...new Set(old.map(({ phase }) => phase))].flatMap((phase) => opening(old, phase)),
  );
  const sent = old.filter((each) => each.message.role === "user" && !openings.has(each));
  return sent.map(({ step, position, message }, i) => {
    const call = i - sent.findIndex((each) => each.step === step);
    return entryOf({ step: step + 1, kind: "message", call }, { id: `old-${position}`, message });
  });
}

/** The calls of all steps: what the ledger knew, and the results that were only in the transcript. */
function effects(steps: Steps, ledger: ReadonlyMap<string, Entry>): Entry[] {
  return [...steps].flatMap(([step, messages]) => {
    const results = messages
      .filter(({ message }) => message.role === "tool")
      .flatMap(({ message }) => partsOf(message).filter(({ type }) => type === "tool-result"));
    const calls = answersIn(messages).filter(
      ({ type, providerExecuted }) => type === "tool-call" && providerExecuted !== true,
    );
    return calls.flatMap((part, call): Entry[] => {
      const known = ledger.get(keyOf(step, "effect", call));
      // A provider may give two calls of one step the same id.
      const at = results.findIndex(({ toolCallId }) => toolCallId === part.toolCallId);
      const result = at < 0 ? undefined : results.splice(at, 1)[0];
      const base = known ?? {
        ...entryOf({ step, kind: "effect", call }, undefined, { class: "once" }),
        name: part.toolName ?? "",
        callId: part.toolCallId ?? "",
      };
      if (result === undefined) return known === undefined ? [] : [withResult(known)];
      return [{ ...base, ...resultOf(result) }];
    });
  });
}

function withResult(entry: Entry): Entry {
  const value = (entry.value ?? {}) as EffectValue;
  if (entry.state !== "done" || value.output !== undefined) return entry;
  return { ...entry, value: { ...value, output: "The call succeeded; its result was not recorded." } };
}

function resultOf({ output }: Part): Pick<Entry, "state" | "value"> {
  const value = output?.value;
  if (output?.type === "error-text") return { state: "failed", value: { error: String(value) } };
  return { state: "done", value: { output: value } };
}

/** The messages of each step. */
type Steps = ReadonlyMap<number, readonly OldMessage[]>;

/** The steps that the model has answered; step 0 is the input. */
function answeredSteps(old: readonly OldMessage[]): Steps {
  const answered = Map.groupBy(
    old.filter(({ step }) => step > 0),
    ({ step }) => step,
  );
  return new Map([...answered].filter(([, messages]) => answersIn(messages).length > 0));
}

function answersIn(messages: readonly OldMessage[]): Part[] {
  return messages
    .filter(({ message }) => message.role === "assistant")
    .flatMap(({ message }) => partsOf(message));
}

function partsOf({ content }: ModelMessage): readonly Part[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : (content as readonly Part[]);
}

/** A part of a message as the provider sent it. */
function itemOf(part: Part): Record<string, unknown>[] {
  const { type, providerOptions, toolCallId, toolName, providerExecuted } = part;
  const more = {
    ...(providerOptions === undefined ? {} : { providerMetadata: providerOptions }),
    ...(providerExecuted === undefined ? {} : { providerExecuted }),
  };
  switch (type) {
    case "text":
    case "reasoning":
      return part.text === "" && type === "text" ? [] : [{ type, text: part.text, ...more }];
    case "tool-call":
      return [{ type, toolCallId, toolName, input: JSON.stringify(part.input ?? {}), ...more }];
    case "tool-result":
      return [{ type, toolCallId, toolName, result: part.output?.value ?? null, ...more }];
    case "file":
      return [{ type, mediaType: part.mediaType, data: part.data, ...more }];
    default:
      return [];
  }
}

const BYTES = "$bytes";

/** Bytes were objects with one field; data that looked like them was put into a list. */
function decodeBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decodeBytes);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [only] = entries;
  if (entries.length === 1 && only![0] === BYTES && typeof only![1] === "string")
    return new Uint8Array(Buffer.from(only![1], "base64"));
  if (entries.length === 1 && only![0] === BYTES && Array.isArray(only![1]) && only![1].length === 1)
    return { [BYTES]: decodeBytes(only![1][0]) };
  return Object.fromEntries(entries.map(([key, each]) => [key, decodeBytes(each)]));
}
