// Approvals of tool calls. What a client sends is a claim, never a proof: an answer counts only if it names a request that
// this store holds, for the same call, tool and input, and the call that runs is the recorded one. Of the history that came
// with the answer, only what the same message says about other calls of the step is used.
import { type ModelMessage, modelMessageSchema } from "ai";
import type { HeadRow, WaitRow } from "../journal/journal.ts";
import { findHead, type RunLog, readEntries } from "../log/run-log.ts";
import { inputDigest } from "../model/ledger.ts";
import { answerApproval, invalidApproval } from "../operations/approve.ts";
import type { LiveRun } from "./live-run.ts";
import { callsOf, itemsOf, type RecordedResponse } from "./response.ts";
import type { Settings } from "./seam.ts";
import type { Approval } from "./session.ts";

/** An answer in a client's history, and the call that it claims to be for. */
export interface ClaimedApproval extends Approval {
  readonly runId: string;
  readonly callId: string | undefined;
  readonly tool: string | undefined;
  readonly input: unknown;
}

interface Part extends Settings {
  readonly type: string;
}

const partsOf = ({ content }: ModelMessage): readonly Part[] =>
  typeof content === "string" ? [] : (content as unknown as readonly Part[]);

/** The answers in the last message of a history, except those for calls that the provider executes. Pure. */
export function claimedApprovals(messages: readonly ModelMessage[] | undefined): ClaimedApproval[] {
  const last = messages?.at(-1);
  if (last?.role !== "tool") return [];
  const said = messages!.filter(({ role }) => role === "assistant").flatMap(partsOf);
  return partsOf(last)
    .filter(({ type }) => type === "tool-approval-response")
    .flatMap(({ approvalId, approved, reason }) => {
      const request = said.findLast(
        (part) => part.type === "tool-approval-request" && part.approvalId === approvalId,
      );
      const call = said.findLast(
        (part) => part.type === "tool-call" && part.toolCallId === request?.toolCallId,
      );
      if (call?.providerExecuted === true) return [];
      return [
        {
          approvalId: String(approvalId),
          approved: approved === true,
          ...(reason === undefined ? {} : { reason: String(reason) }),
          runId: String(approvalId).replace(/\.\d+\.\d+$/, ""),
          callId: call?.toolCallId as string | undefined,
          tool: call?.toolName as string | undefined,
          input: call?.input,
        },
      ];
    });
}

/** Who claims that a human has answered. */
interface Claimant {
  readonly agentId: string;
  readonly caller: string | undefined;
  readonly history: readonly ModelMessage[];
}

/**
 * Records answers that match the requests of their run, which has to be one of this agent and, if the call names a caller, of that
 * caller. Throws RUN_APPROVAL_INVALID for one that does not.
 */
export async function acceptApprovals(
  log: RunLog,
  claimed: readonly ClaimedApproval[],
  { agentId, caller, history }: Claimant,
): Promise<string> {
  const [{ runId, approvalId: first }] = claimed as [ClaimedApproval];
  const head = await findHead(log, runId);
  if (head !== undefined && head.agentId !== agentId)
    throw invalidApproval(first, "its run belongs to another agent");
  if (head !== undefined && caller !== undefined && head.caller !== caller) {
    const hint = head.caller === null ? `agent.approve("${runId}", "${first}") answers it` : undefined;
    throw invalidApproval(first, `its run ${ownerOf(head)}`, undefined, hint);
  }
  const waits = new Map((await log.journal.readWaits(runId)).map((wait) => [wait.id, wait]));
  for (const claim of claimed) {
    const wait = waits.get(claim.approvalId);
    if (claim.runId !== runId || wait === undefined || wait.kind !== "approval") {
      throw invalidApproval(claim.approvalId, "this store has no such request");
    }
    // The request itself is in the journal; what the client says about it must be true.
    if (wait.names[0] !== claim.tool || wait.digest !== inputDigest(claim.input)) {
      throw invalidApproval(claim.approvalId, "it is for another call");
    }
  }
  let sent = await sentWith(log, runId, waits, history.at(-1)!);
  for (const { approvalId, approved, reason } of claimed) {
    const wait = waits.get(approvalId)!;
    await answerApproval(log, runId, wait, { approved, reason, sent });
    if (wait.state !== "answered") sent = [];
  }
  return runId;
}

/**
 * What the message with the answers says about other calls of the same step: results of tools that the client executes, and
 * answers to requests of the provider. A result of any other call is not used.
 */
async function sentWith(
  log: RunLog,
  runId: string,
  waits: ReadonlyMap<string, WaitRow>,
  message: ModelMessage,
): Promise<readonly Part[]> {
  const others = partsOf(message).filter(
    ({ type, approvalId }) =>
      type === "tool-result" || (type === "tool-approval-response" && !waits.has(approvalId)),
  );
  if (others.length === 0) return [];
  const entries = await readEntries(log, runId);
  const last = entries.findLast(({ kind }) => kind === "response");
  if (last === undefined) return [];
  const items = itemsOf(last.value as RecordedResponse);
  const calls = callsOf(last.step, items);
  // A call with an entry was executed here, and one with a request is not the client's to execute.
  const isHandled = (call: number) =>
    entries.some((entry) => entry.kind === "effect" && entry.step === last.step && entry.call === call) ||
    [...waits.values()].some((wait) => wait.step === last.step && wait.call === call);
  const sent = others.filter(({ type, toolCallId, approvalId }) => {
    if (type === "tool-approval-response") return items.some((item) => item.approvalId === approvalId);
    const places = calls.filter(({ callId }) => callId === toolCallId);
    return places.length > 0 && !places.some(({ call }) => isHandled(call));
  });
  if (modelMessageSchema.safeParse({ role: "tool", content: sent }).success) return sent;
  throw invalidApproval(waits.keys().next().value!, "a tool result that was sent with it is not valid");
}

/** Why a run is not that of a caller. */
export function ownerOf({ caller }: Pick<HeadRow, "caller">): string {
  return caller === null ? "was started without a caller" : "belongs to another caller";
}

/** The requests for approval in the last step of a call. */
export function requestedApprovals(
  run: LiveRun,
  content: readonly Settings[],
  dueMs: number | null,
): WaitRow[] {
  return content
    .filter((part) => part.type === "tool-approval-request" && part.isAutomatic !== true)
    .flatMap(({ approvalId, toolCall }): WaitRow[] => {
      const digest = inputDigest(toolCall.input);
      const place = placeAskedAbout(run, content, toolCall.toolCallId, digest);
      if (place === undefined) return [];
      return [
        {
          ...{
            id: approvalId,
            kind: "approval",
            step: place.step,
            call: place.call,
            names: [toolCall.toolName],
          },
          ...{ state: "open", dueMs, digest, answer: null },
        } as WaitRow,
      ];
    });
}

/** A response may use one id for several calls. The request is for the one with this input, or else for the last one. */
function placeAskedAbout(run: LiveRun, content: readonly Settings[], id: string, digest: string) {
  const places = run.calls.filter(({ callId }) => callId === id);
  const position = content
    .filter(({ type, toolCallId }) => type === "tool-call" && toolCallId === id)
    .findIndex(({ input }) => inputDigest(input) === digest);
  return places.at(position);
}
