// Secrets stay home (INV-7): text that enters a flow is checked with the platform's kept rules and refused with the
// rule's name and the field, never the value. The rules cost 35 ms to load, so text that cannot hold a secret (short
// words, lower-case slugs) is told apart first and loads nothing: that is nearly every `flow update`.
import { LazarusError } from "../../platform/errors.ts";

/** What the rules look for is never shorter, and always has digits or capitals in it, or is a URL or a PEM block. */
const LONGEST_HARMLESS_WORD = 15;
const LOWER_SLUG = /^[a-z._/-]+$/;

/** Whether the rules need to see this text at all. */
export function isWorthChecking(text: string): boolean {
  if (text.includes("://") || text.includes("BEGIN") || text.includes("=")) return true;
  return text.split(/\s+/).some((word) => word.length > LONGEST_HARMLESS_WORD && !LOWER_SLUG.test(word));
}

/** Refuses when any of the named texts holds a secret. */
export async function refuseSecrets(fields: Readonly<Record<string, string | undefined>>): Promise<void> {
  for (const [field, text] of Object.entries(fields)) {
    if (text === undefined || !isWorthChecking(text)) continue;
    const { findSecrets } = await import("../../platform/secrets.ts");
    const [found] = await findSecrets(text);
    if (found === undefined) continue;
    throw new LazarusError("FLOW_SECRET", `${field} holds a secret (${found.kind}); nothing was written`, {
      hint: `keep it in the environment or a key store, and put only its name into ${field}`,
      details: { field, rule: found.kind },
    });
  }
}

/** The text with every secret replaced by its rule's name, and how many there were. */
export async function redactText(text: string): Promise<{ text: string; count: number }> {
  if (!isWorthChecking(text)) return { text, count: 0 };
  const { redactSecrets } = await import("../../platform/redact.ts");
  const { value, count } = await redactSecrets(text);
  return { text: value, count };
}
