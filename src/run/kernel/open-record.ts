// Opens the record of a run: a new one in the store that its host chose, or a claimed one. A run that cannot be recorded is kept
// in memory with a warning, unless its host requires durability.
import type { ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import {
  beginSession,
  continueSession,
  type Session,
  type SessionOptions,
  type StoredInput,
} from "../engine/session.ts";
import { createMemoryJournal } from "../journal/sqlite.ts";
import { createRunLog, type RunLog } from "../log/run-log.ts";
import { RunStopped } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunInfo } from "../model/types.ts";
import type { Agent } from "./agent.ts";
import type { Reporter } from "./isolate-host.ts";
import type { Setup } from "./options.ts";
import { INPUT_PHASE } from "./phases.ts";
import type { ClaimedRun } from "./ports.ts";

/** Begins the record of a run. Throws RUN_ID_TAKEN. */
export async function beginRecord(
  setup: Setup,
  agent: Agent,
  { info, messages }: { readonly info: RunInfo; readonly messages: readonly ModelMessage[] },
  reporter: Reporter,
): Promise<{ session: Session; isDurable: boolean }> {
  const begin = async (log: RunLog) => {
    const input: StoredInput = {
      mode: agent?.stream === true ? "stream" : "generate",
      call: { messages },
      phase: agent?.phases === undefined ? 0 : INPUT_PHASE,
    };
    const { runId: id, agentId, parentRunId, callerId: caller } = info;
    const identity = { id, agentId, parentRunId, caller, info, messages: messages.length };
    let session: Session | undefined;
    const options = sessionOptions(setup, reporter, () => session);
    session = await beginSession(log, identity, input, options);
    return session;
  };
  const { checkpointer } = setup.ports ?? {};
  const isRequired = checkpointer?.required ?? setup.checkpoint?.required ?? false;
  try {
    const store = checkpointer === undefined ? setup.store : await checkpointer.begin(info);
    if (store !== undefined) return { session: await begin(store.log), isDurable: true };
  } catch (error) {
    if (isRequired || isRefusal(error)) throw error;
    reporter.warn(`this run is not durable: ${thrownText(error)}`);
  }
  const memory = createRunLog(createMemoryJournal(), { machine: setup.machine, keepSecrets: true });
  return { session: await begin(memory), isDurable: false };
}

/** What the caller has to change, whether or not the run is durable. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof LazarusError && (error.code === "RUN_ID_TAKEN" || error.code === "RUN_NOT_STORABLE")
  );
}

/** Continues a run that this process has claimed. */
export async function resumeRecord(setup: Setup, claimed: ClaimedRun, reporter: Reporter): Promise<Session> {
  const { lease, loaded } = claimed;
  let session: Session | undefined;
  const options = sessionOptions(setup, reporter, () => session);
  session = await continueSession(setup.store!.log, lease, loaded, options);
  return session;
}

const FATAL: ReadonlySet<string> = new Set(["RUN_OUT_OF_ORDER", "RUN_UNKNOWN"]);

function sessionOptions(
  { graceMs, checkpoint }: Setup,
  reporter: Reporter,
  current: () => Session | undefined,
): SessionOptions {
  return {
    graceMs,
    serial: true,
    throttleMs: checkpoint?.throttleMs,
    /** What failed is written with the next write. */
    onWriteFailed(error) {
      const isFatal = error instanceof LazarusError && FATAL.has(error.code);
      if (isFatal || error instanceof RunStopped) current()?.run.halt(error);
      else reporter.warn(`a step was not saved yet: ${thrownText(error)}`);
    },
  };
}
