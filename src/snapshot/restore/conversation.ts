// A restore and the agent's conversation: whether it moves, and what has to be known before it does. The copy in the cell is
// restored like every other file; agents/conversation/put-back.ts then writes it to where the agent keeps it.
import {
  currentSession,
  isIncomplete,
  listSessionFiles,
  putBackConversation,
  type SessionName,
} from "../../agents/conversation/put-back.ts";
import { CONVERSATION_DIRECTORY } from "../../agents/session.ts";
import type { MissionContext } from "../mission-context.ts";
import type { Flaw } from "../model/entry.ts";
import type { RestorePlan } from "./plan.ts";
import { coversConversation, type Scope } from "./scope.ts";

/** Whether the conversation moves, and what is known about it before it does. */
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

/** No safety checkpoint has the agent's files: one that differs is moved aside. */
export function putBackWithoutSafety(
  context: MissionContext,
  directory: string,
  id: string,
): readonly Flaw[] {
  return putBackConversation({ ...context, cellRoot: directory }, { before: null, id, isSaved: false });
}
