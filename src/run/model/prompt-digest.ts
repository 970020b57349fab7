// Digests of prompts, by which a replay notices that the model would see something else now. A prompt repeats the whole
// conversation at every step, so only what is new is hashed in full: instructions, and everything from the last answer on. What came
// before was hashed at the steps that it was new to; of it, the roles and lengths are enough. Pure.
import { inputDigest } from "./ledger.ts";

/** Enough to notice a change. */
const LENGTH = 16;
/** Marks digests that hash only what is new; earlier ones hash all. */
const PREFIX = "new:";

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** The digest that is stored with a response. */
export function promptDigest(prompt: readonly Message[]): string {
  const last = prompt.findLastIndex(({ role }) => role === "assistant");
  const parts = prompt.map((message, i) =>
    i >= last || message.role === "system" ? message : [message.role, shapeOf(message.content)],
  );
  return PREFIX + inputDigest(parts).slice(0, LENGTH);
}

/** Whether a stored digest is that of a prompt. */
export function isPromptDigest(digest: string | null, prompt: readonly Message[]): boolean {
  if (digest?.startsWith(PREFIX)) return digest === promptDigest(prompt);
  return digest === inputDigest(prompt).slice(0, LENGTH);
}

function shapeOf(content: unknown): unknown {
  if (!Array.isArray(content)) return String(content).length;
  return content.map(({ type, text, toolCallId }) => [type, text?.length, toolCallId]);
}
