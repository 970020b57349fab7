// Refuses secrets in flow files (INV-7). The error names the rule and the field, never the value. The rules take 35 ms to
// load, so text that cannot contain a secret (short words, lowercase slugs) is recognized first and loads nothing:
// that is nearly every `flow update`.
import { LazarusError } from "../../platform/errors.ts";
import { mayContainSecret } from "../../platform/secrets/generic.ts";

/** A longer word with digits or capitals; otherwise a secret is a URL, a PEM block, or follows a word such as `password`. */
const MAX_HARMLESS_WORD = 15;
const LOWER_SLUG = /^[a-z._/-]+$/;

/** Whether the rules need to check this text. */
export function mayHoldSecret(text: string): boolean {
  if (text.includes("://") || text.includes("BEGIN") || text.includes("=") || mayContainSecret(text))
    return true;
  return text.split(/\s+/).some((word) => word.length > MAX_HARMLESS_WORD && !LOWER_SLUG.test(word));
}

/** Throws if any of the named texts contains a secret. */
export async function refuseSecrets(fields: Readonly<Record<string, string | undefined>>): Promise<void> {
  for (const [field, text] of Object.entries(fields)) {
    if (text === undefined || !mayHoldSecret(text)) continue;
    const { findSecrets } = await import("../../platform/secrets/find.ts");
    const [found] = await findSecrets(text);
    if (found === undefined) continue;
    throw new LazarusError("FLOW_SECRET", `${field} contains a secret (${found.kind}); nothing was written`, {
      hint: `keep it in the environment or a secret store, and put only its name into ${field}`,
      details: { field, rule: found.kind },
    });
  }
}

/** Replaces every secret by the name of its rule, and counts them. */
export async function redactText(text: string): Promise<{ text: string; count: number }> {
  if (!mayHoldSecret(text)) return { text, count: 0 };
  const { redactSecrets } = await import("../../platform/secrets/redact.ts");
  const { value, count } = await redactSecrets(text);
  return { text: value, count };
}
