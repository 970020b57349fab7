// Tool calls of an agent CLI that its death cut off, except for those that only read: whether they took effect is unknown.
// The user's own rules decide which of them the user is asked about (INV-11). Writes nothing.
import type { ToolCall } from "../../agents/adapter.ts";
import type { EffectHistory } from "../../effects/history.ts";
import { redactSecrets } from "../../platform/secrets/redact.ts";
import type { OpenCall } from "../record/conversation.ts";
import { isReadOnly } from "./effect-rules.ts";
import { searchPatterns } from "./match-patterns.ts";

/** The calls as they are recorded. A transcript still has the open calls of earlier lives, which are recorded already. */
export async function describeCalls(
  calls: readonly ToolCall[],
  epoch: number,
  rules: readonly string[],
  history: Pick<EffectHistory, "read">,
): Promise<OpenCall[]> {
  const earlier = new Set(
    [...history.read().effects.values()]
      .filter(({ source, id }) => source === "call" && !id.startsWith(`${epoch}.`))
      .map(({ id }) => id.slice(id.indexOf(".") + 1)),
  );
  const found: OpenCall[] = [];
  for (const [index, call] of calls.entries()) {
    if (isReadOnly(call) || (call.id !== null && earlier.has(call.id))) continue;
    const { tool, summary, command } = (await redactSecrets(call)).value;
    found.push({
      id: `${epoch}.${call.id ?? index}`,
      tool,
      summary,
      command,
      marked: await matches(call, rules),
      outcome: null,
    });
  }
  return found;
}

async function matches({ tool, command }: ToolCall, rules: readonly string[]): Promise<boolean> {
  const lines = [tool, (command ?? "").replaceAll(/\s+/g, " ")];
  // The class does not matter here, only whether one of them matches.
  const patterns = rules.map((pattern) => ({ class: "permanent" as const, pattern }));
  return (await searchPatterns(lines, patterns)).words !== undefined;
}
