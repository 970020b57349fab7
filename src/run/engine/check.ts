// Replays open runs against the current agent, without acting: no model or tool is called, and nothing is written.
// A changed agent still continues, because responses are data; this shows beforehand which runs would see a difference, and
// which could not continue.
import type { ToolSet } from "ai";
import { OPEN } from "../journal/head.ts";
import type { HeadRow } from "../journal/journal.ts";
import { loadRun, type RunLog } from "../log/run-log.ts";
import { thrownText } from "../model/thrown.ts";
import { type Loop, replayParameters } from "./loop.ts";
import type { RunKind } from "./open-run.ts";
import { callsOf, itemsOf, type RecordedResponse } from "./response.ts";
import type { Settings } from "./seam.ts";
import { readSession, type Session } from "./session.ts";

/** What would happen to a run. `same`: it continues as it started. `differs`: it continues, with what `problems` lists. */
export interface CheckedRun {
  readonly runId: string;
  readonly status: HeadRow["status"];
  readonly step: number;
  readonly verdict: "same" | "differs" | "stuck";
  readonly problems: readonly string[];
}

/** Checks the open runs of an agent, oldest first. */
export async function checkRuns(
  log: RunLog,
  kind: RunKind,
  loop: Loop,
  tools: ToolSet | undefined,
): Promise<CheckedRun[]> {
  const checked: CheckedRun[] = [];
  for (const head of (await log.journal.list({ agentId: kind.agentId, statuses: OPEN })).reverse()) {
    const loaded = await loadRun(log, head.id);
    if (loaded === undefined) continue;
    const session = await readSession(log, loaded, { graceMs: kind.graceMs, recordedOnly: true });
    // The runs of an executor have another loop.
    if (session.segments[0]?.input?.phase !== undefined) continue;
    const { runId, status, step } = { runId: head.id, ...head };
    const differences = missingTools(session, tools);
    const stuck = await replay(loop, session, differences);
    if (head.definition !== kind.definition && kind.onChange !== "continue") {
      stuck.push("another version of the agent started it, and onChange leaves it to that version");
    }
    const verdict = stuck.length > 0 ? "stuck" : differences.length > 0 ? "differs" : "same";
    checked.push({ runId, status, step, verdict, problems: [...stuck, ...differences] });
  }
  return checked;
}

/** Runs the loop up to where the run is now. Adds differences; returns why it cannot continue. */
async function replay(loop: Loop, session: Session, differences: string[]): Promise<string[]> {
  const { run, segments, loaded } = session;
  const last = loaded.head.step;
  run.onReplay = (step, wasSame) => {
    if (!wasSame) differences.push(`the model saw another prompt at step ${step}`);
  };
  try {
    const call = await replayParameters(loop, session, segments.at(-1)!, run);
    const isStream = segments[0]!.input?.mode === "stream";
    const work = isStream ? drained(await loop.stream(run, call)) : loop.generate(run, call);
    work.catch(() => {});
    await Promise.race([work, run.halted]);
  } catch (error) {
    // The replay stops where the record ends.
    if (run.step < last || run.haltedBy === undefined)
      return [`it stops after step ${run.step}: ${thrownText(error)}`];
  } finally {
    run.stop.abort();
  }
  return run.step < last ? [`it would end after step ${run.step} of ${last}`] : [];
}

async function drained(result: Settings): Promise<unknown> {
  return result.consumeStream();
}

/** Calls that wait for a result of a tool that the agent no longer has. */
function missingTools({ run, loaded }: Session, tools: ToolSet = {}): string[] {
  return run
    .entriesOf("response")
    .flatMap(({ step, value }) => callsOf(step, itemsOf(value as RecordedResponse)))
    .filter(
      (call) => !Object.hasOwn(tools, call.tool) && !run.hasEnded(call) && call.step === loaded.head.step,
    )
    .map(({ tool, step }) => `the agent no longer has the tool ${tool}, which step ${step} calls`);
}
