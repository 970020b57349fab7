// Cancels runs: the owner is told, wherever it is; a run without an owner is closed here. Child runs are cancelled, too.
import { claimRun, findHead, loadRun, type RunLog, timeOf } from "../log/run-log.ts";
import { RunStopped } from "../model/stop.ts";
import { LiveRun } from "./live-run.ts";
import { Recorder } from "./recorder.ts";
import { activeRuns, closeSession, readSession } from "./session.ts";

/** Cancels a run and its child runs. False when it has already ended. */
export async function cancelRun(log: RunLog, runId: string): Promise<boolean> {
  const stop = new RunStopped("cancelled", "the run was cancelled");
  if (!(await log.journal.requestCancel(runId, timeOf(log)))) return false;
  for (const { id } of await log.journal.list({ parentRunId: runId })) await cancelRun(log, id);
  const running = activeRuns(log).get(runId);
  if (running !== undefined) {
    running.halt(stop);
    return true;
  }
  const head = await findHead(log, runId);
  const lease = head && (await claimRun(log, head));
  const loaded = lease && (await loadRun(log, runId));
  if (lease === undefined || loaded === undefined) return true;
  const { run } = await readSession(log, loaded, { graceMs: 0 });
  const recorder = new Recorder(log, lease, loaded.head);
  const owned = new LiveRun({
    log,
    ...loaded,
    waits: [...run.waits.values()],
    recorder,
    base: 0,
    graceMs: 0,
  });
  markUnknown(owned);
  await closeSession(owned, { kind: "threw", error: stop });
  return true;
}

/** What was in progress when its process died may or may not have happened, and the record says so. */
function markUnknown(run: LiveRun): void {
  for (const entry of run.entriesOf("effect")) {
    if (entry.state !== "started" || entry.class === "read") continue;
    run.keep(
      { ...entry, state: "unknown", value: { ...(entry.value as object), error: "the run was cancelled" } },
      "full",
    );
  }
}
