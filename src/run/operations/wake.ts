// Wakes a run before its time: a sleep ends now, and a wait for a message ends as if it had timed out. For a run that
// waits for a child run, that one is woken. A request for approval is not woken, only answered. A store in a cell may have been
// written by an agent: a run that waits for itself is woken once.
import { LazarusError } from "../../platform/errors.ts";
import type { WaitRow } from "../journal/journal.ts";
import { answerWait, type RunLog, requireHead } from "../log/run-log.ts";
import { checkKey } from "./check-key.ts";

/** Ends the open sleeps and waits of a run. Throws RUN_ENDED when it does not wait, RUN_APPROVAL_INVALID for an approval. */
export function wakeRun(log: RunLog, runId: string): Promise<readonly WaitRow[]> {
  return wake(log, runId, new Set());
}

async function wake(log: RunLog, runId: string, seen: Set<string>): Promise<readonly WaitRow[]> {
  if (seen.has(runId)) return [];
  seen.add(runId);
  const head = await requireHead(log, runId);
  checkKey(log, head);
  const open = (await log.journal.readWaits(runId)).filter(({ state }) => state === "open");
  const waits = open.filter(({ kind }) => kind !== "approval");
  if (head.status !== "waiting" || open.length === 0) {
    throw new LazarusError("RUN_ENDED", `run ${runId} is ${head.status}: it is not waiting`, {
      hint: `lazarus runs show ${runId}`,
    });
  }
  if (waits.length === 0) {
    throw new LazarusError(
      "RUN_APPROVAL_INVALID",
      `run ${runId} waits for an approval of ${open.map(({ names }) => names[0]).join(", ")}; it cannot be woken`,
      { hint: `lazarus runs approve ${runId} [--deny]` },
    );
  }
  const woken: WaitRow[] = [];
  for (const wait of waits) {
    if (wait.kind === "child") woken.push(...(await wake(log, wait.names[0]!, seen)));
    else {
      await answerWait(log, runId, wait, { woken: true });
      woken.push(wait);
    }
  }
  return woken;
}
