// Shows a run: its waits, inbox, child runs and total usage.
import type { WaitRow } from "../journal/journal.ts";
import { openAnswer, type RunLog, readEntries, readInbox, requireHead, timeOf } from "../log/run-log.ts";
import { listRuns, type RunSummary, summarize } from "./list.ts";

/** A wait, with the input that an approval is for. */
export interface WaitView {
  readonly id: string;
  readonly kind: WaitRow["kind"];
  readonly state: WaitRow["state"];
  readonly step: number;
  readonly call: number;
  /** The tool of an approval, the names of awaited messages. */
  readonly names: readonly string[];
  readonly dueMs: number | null;
  /** The input of the tool that waits for an approval, as the model wrote it. */
  readonly input: unknown;
  readonly answer: unknown;
}

/** A message that the run has not taken yet. */
export interface InboxView {
  readonly id: string;
  readonly name: string;
  readonly value: unknown;
}

/** A run with its waits, inbox, child runs and usage. */
export interface RunView {
  readonly summary: RunSummary;
  readonly waits: readonly WaitView[];
  readonly inbox: readonly InboxView[];
  readonly children: readonly RunSummary[];
  /** Usage of the run and all of its descendants. */
  readonly totalUsage: RunSummary["usage"];
}

/** Shows a run. Throws RUN_UNKNOWN. */
export async function showRun(log: RunLog, runId: string): Promise<RunView> {
  const head = await requireHead(log, runId);
  const rows = await log.journal.readWaits(runId);
  // Bodies may be large: they are read only for the input that an approval is for.
  const entries = rows.some(({ kind }) => kind === "approval") ? await readEntries(log, runId) : [];
  const callIn = ({ step, call }: WaitRow) => {
    const response = entries.find((entry) => entry.step === step && entry.kind === "response");
    return inputOf(response?.value, call);
  };
  const waits = rows.map((wait): WaitView => {
    const { id, kind, step, call, names, dueMs } = wait;
    const state = wait.state === "open" && dueMs !== null && dueMs <= timeOf(log) ? "expired" : wait.state;
    const input = kind === "approval" ? callIn(wait) : undefined;
    return { id, kind, state, step, call, names, dueMs, input, answer: answerOf(log, runId, wait) };
  });
  const children = await listRuns(log, { parentRunId: runId });
  const summary = await summarize(log, head);
  return {
    summary,
    waits,
    inbox: await readInbox(log, runId),
    children,
    totalUsage: await total(log, summary),
  };
}

/** An answer that a fork shares is in the journal of the run that asked. */
function answerOf(log: RunLog, runId: string, wait: WaitRow): unknown {
  const asked = wait.kind === "approval" ? wait.id.replace(/\.\d+\.\d+$/, "") : runId;
  return openAnswer(log, asked, wait);
}

/** The input of the call at a position, from either shape of a response. */
function inputOf(response: unknown, call: number): unknown {
  const { parts, result } = (response ?? {}) as {
    parts?: readonly Call[];
    result?: { content: readonly Call[] };
  };
  const calls = (parts ?? result?.content ?? []).filter(
    ({ type, providerExecuted }) => type === "tool-call" && providerExecuted !== true,
  );
  const text = calls[call]?.input;
  try {
    return typeof text === "string" ? JSON.parse(text) : text;
  } catch {
    return text;
  }
}

interface Call {
  readonly type: string;
  readonly providerExecuted?: boolean;
  readonly input?: unknown;
}

/** Of a run and its descendants. In a damaged store, a run may be its own descendant. */
async function total(
  log: RunLog,
  { runId, usage }: Pick<RunSummary, "runId" | "usage">,
  seen = new Set([runId]),
): Promise<RunSummary["usage"]> {
  let { inputTokens, outputTokens } = usage;
  for (const { id, ...own } of await log.journal.list({ parentRunId: runId })) {
    if (seen.has(id)) continue;
    seen.add(id);
    const below = await total(log, { runId: id, usage: own }, seen);
    inputTokens += below.inputTokens;
    outputTokens += below.outputTokens;
  }
  return { inputTokens, outputTokens };
}
