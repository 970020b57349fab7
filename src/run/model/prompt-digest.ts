// Digests of prompts, by which a replay notices that the model would see something else now. A prompt repeats the whole conversation
// at every step, so each message extends the digest of those before it, and a process hashes only what follows the part that is equal
// to the prompt of the step before. Finding that part is cheap: the SDK passes the same texts on, and equal references are equal. Pure.
import { sha256Hex } from "../../platform/sha256.ts";
import { inputDigest } from "./ledger.ts";

/** Enough to notice a change. */
const LENGTH = 16;
/** Marks digests of a chain. */
const PREFIX = "chain:";
/** Marks digests that an earlier version made: they contain only the shape of older messages. */
const SHAPE_PREFIX = "new:";

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** A prompt, and the digests of its beginnings: one per message. */
export interface PromptChain {
  readonly prompt: readonly Message[];
  readonly digests: readonly string[];
}

/** The chain of a prompt, made from that of another one with which it may share messages. */
export function chainPrompt(before: PromptChain | undefined, prompt: readonly Message[]): PromptChain {
  const digests = before === undefined ? [] : before.digests.slice(0, countSame(before.prompt, prompt));
  for (const message of prompt.slice(digests.length))
    digests.push(sha256Hex(`${digests.at(-1) ?? ""} ${inputDigest(message)}`).slice(0, LENGTH));
  return { prompt, digests };
}

/** The digest that is stored with a response. */
export function promptDigest({ digests }: PromptChain): string {
  return PREFIX + (digests.at(-1) ?? "");
}

/** Whether a stored digest is that of a prompt. */
export function isPromptDigest(digest: string | null, chain: PromptChain): boolean {
  if (digest?.startsWith(PREFIX)) return digest === promptDigest(chain);
  if (digest?.startsWith(SHAPE_PREFIX)) return digest === shapeDigest(chain.prompt);
  return digest === inputDigest(chain.prompt).slice(0, LENGTH);
}

function countSame(before: readonly Message[], prompt: readonly Message[]): number {
  const changed = before.findIndex((message, i) => !isSame(message, prompt[i]));
  return changed < 0 ? before.length : changed;
}

/** Whether two values have the same fields. False is always safe: then they are hashed. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((each, i) => isSame(each, b[i]));
  if (!isPlain(a) || !isPlain(b)) return false;
  let surplus = 0;
  for (const key in a) {
    surplus += 1;
    if (!(key in b) || !isSame(a[key as never], b[key as never])) return false;
  }
  for (const _ in b) surplus -= 1;
  return surplus === 0;
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function shapeDigest(prompt: readonly Message[]): string {
  const last = prompt.findLastIndex(({ role }) => role === "assistant");
  const parts = prompt.map((message, i) =>
    i >= last || message.role === "system" ? message : [message.role, shapeOf(message.content)],
  );
  return SHAPE_PREFIX + inputDigest(parts).slice(0, LENGTH);
}

function shapeOf(content: unknown): unknown {
  if (!Array.isArray(content)) return String(content).length;
  return content.map(({ type, text, toolCallId }) => [type, text?.length, toolCallId]);
}
