// The conversation in a restore: whether it is restored, and what has to be known before. The copy in the cell is
// restored like every other file; agents/conversation/put-back.ts then writes it to where the agent keeps it.
import {
  currentSession,
  isIncomplete,
  listSessionFiles,
  putBackConversation,
  type SessionName,
  sharedConversation,
} from "../../agents/conversation/put-back.ts";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { Flaw } from "../model/entry.ts";
import type { RestorePlan } from "./plan.ts";
import { coversConversation, type Part, type Scope, withoutConversation } from "./scope.ts";

/** Whether the conversation is restored, and what is known about it before. */
export function planPutBack(
  context: MissionContext,
  { changes }: RestorePlan,
  scope: Scope,
): { readonly before: SessionName | null; readonly files: readonly string[] } | undefined {
  if (!coversConversation(scope)) return undefined;
  const paths = [...changes.added, ...changes.changed, ...changes.removed];
  if (!paths.some((path) => path.startsWith(`${CONVERSATION_DIRECTORY}/`)) && !isIncomplete(context))
    return undefined;
  const before = currentSession(context);
  return { before, files: listSessionFiles(context, before) };
}

/**
 * A conversation in a database that other sessions share is not restored: returns the rest, and a flaw that says so. A
 * restore of nothing else is refused.
 */
export function keepShared(
  context: MissionContext,
  scope: Scope,
  part: Part | undefined,
): { readonly scope: Scope; readonly kept: readonly Flaw[] } {
  const adapter = coversConversation(scope) ? sharedConversation(context) : undefined;
  if (adapter === undefined) return { scope, kept: [] };
  const reason = `the conversation of ${adapter} is in a database that other sessions share, so it was not restored`;
  if (part === "conversation")
    throw new LazarusError("CONVERSATION_UNSUPPORTED", `cannot restore ${context.mission}: ${reason}`, {
      hint: `to restore its files: lazarus restore ${context.mission} --files-only`,
    });
  return {
    scope: withoutConversation(scope),
    kept: [{ path: CONVERSATION_DIRECTORY, kind: "degraded", reason }],
  };
}

/** No safety checkpoint has the agent's files: one that differs is moved aside. */
export function putBackWithoutSafety(
  context: MissionContext,
  directory: string,
  id: string,
): readonly Flaw[] {
  return putBackConversation({ ...context, cellRoot: directory }, { before: null, id, isSaved: false });
}
