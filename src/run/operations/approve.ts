// Answers requests for approval, from any process. Only a request that the journal holds can be answered, once, before it
// expires.
import { LazarusError } from "../../platform/errors.ts";
import type { WaitRow } from "../journal/journal.ts";
import { answerWait, openAnswer, type RunLog, requireHead, timeOf } from "../log/run-log.ts";
import { checkKey } from "./check-key.ts";

/** A human's answer. */
export interface ApprovalAnswer {
  readonly approved: boolean;
  readonly reason?: string | undefined;
}

/** The result of an answer. `expired`: it came too late and counts as a denial, which the run finds out on its own. */
export type ApprovalVerdict = "answered" | "expired";

/** Answers a request of a run. Without an id, its only open request. The run continues when its host sees the answer. */
export async function approveRun(
  log: RunLog,
  runId: string,
  requestId: string | undefined,
  answer: ApprovalAnswer,
): Promise<{ readonly request: WaitRow; readonly verdict: ApprovalVerdict }> {
  checkAnswer(answer);
  checkKey(log, await requireHead(log, runId));
  const waits = await log.journal.readWaits(runId);
  const requests = waits.filter(({ kind }) => kind === "approval");
  const children = waits.filter(({ kind, state }) => kind === "child" && state === "open");
  const request =
    requestId === undefined
      ? onlyOpen(log, runId, requests, children)
      : requests.find(({ id }) => id === requestId);
  if (request === undefined) {
    throw new LazarusError(
      "RUN_APPROVAL_INVALID",
      `run ${runId} has no request ${JSON.stringify(requestId)}`,
      {
        hint: `lazarus runs show ${runId}`,
      },
    );
  }
  // Nothing else: an application may pass on what a client sent.
  const { approved, reason } = answer;
  return { request, verdict: await answerApproval(log, runId, request, { approved, reason }) };
}

/** The requests that can still be answered. */
export function openApprovals(waits: readonly WaitRow[], nowMs: number): WaitRow[] {
  return waits.filter(
    ({ kind, state, dueMs }) => kind === "approval" && state === "open" && (dueMs === null || dueMs > nowMs),
  );
}

function onlyOpen(
  log: RunLog,
  runId: string,
  requests: readonly WaitRow[],
  children: readonly WaitRow[],
): WaitRow {
  const open = openApprovals(requests, timeOf(log));
  if (open.length === 1) return open[0]!;
  const [first] = open;
  throw new LazarusError(
    "RUN_APPROVAL_INVALID",
    first === undefined
      ? `run ${runId} has no open request for approval${children.length === 0 ? "" : `; it waits for its child run ${children[0]!.names[0]}`}`
      : `run ${runId} has ${open.length} open requests: ${open.map(({ id, names }) => `${id} (${names[0]})`).join(", ")}`,
    {
      hint:
        first === undefined
          ? `lazarus runs show ${children[0]?.names[0] ?? runId}`
          : `lazarus runs approve ${runId} --request ${first.id}`,
    },
  );
}

/** Only a real boolean is a yes or a no: the text "false" must not run a tool. */
function checkAnswer(answer: ApprovalAnswer | null): void {
  const { approved, reason } = answer ?? {};
  if (typeof approved === "boolean" && (reason === undefined || typeof reason === "string")) return;
  throw new LazarusError("USAGE", "an answer needs `approved`, true or false; its `reason` is a text", {
    hint: 'for example { approved: false, reason: "too much" }',
  });
}

/**
 * Records one answer, and the parts of messages that a client sent with it. The same decision again is accepted; the opposite
 * one is refused.
 */
export async function answerApproval(
  log: RunLog,
  runId: string,
  wait: WaitRow,
  { sent = [], ...given }: ApprovalAnswer & { readonly sent?: readonly object[] },
): Promise<ApprovalVerdict> {
  checkAnswer(given);
  const { approved, reason } = given;
  const answer = {
    approved,
    ...(reason === undefined ? {} : { reason }),
    ...(sent.length === 0 ? {} : { sent }),
  };
  const verdict = wait.state === "answered" ? "closed" : await answerWait(log, runId, wait, answer);
  if (verdict === "answered" || verdict === "expired") return verdict;
  if (verdict !== "closed") throw invalidApproval(wait.id, "it is gone");
  // Another process may have answered since the request was read.
  const now = (await log.journal.readWaits(runId)).find(({ id }) => id === wait.id);
  if (now?.state !== "answered") throw invalidApproval(wait.id, "its run has ended");
  const stored = openAnswer(log, runId, now) as ApprovalAnswer | undefined;
  if (stored?.approved === approved) return "answered";
  throw invalidApproval(
    wait.id,
    `it has been answered: ${stored?.approved === true ? "approved" : "denied"}`,
    "nothing was changed",
  );
}

/** The error for an answer that is not accepted. */
export function invalidApproval(
  approvalId: string,
  problem: string,
  effect = "nothing was run",
  hint = "lazarus runs, to list the runs that wait for an approval",
): LazarusError {
  return new LazarusError(
    "RUN_APPROVAL_INVALID",
    `approval ${JSON.stringify(approvalId)} is refused: ${problem}; ${effect}`,
    { hint, details: { approvalId } },
  );
}
