// Runs the steps of a plan in order, each at most once, with the same records as `flow once`. Killed at any point and run
// again, it continues where it stopped: finished steps are skipped, a failed step is run again, and a step with an
// unknown outcome stops it unless the step declares `retry: safe` (INV-5).
import { resolve } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import type { FlowDocument } from "../document/document.ts";
import { openFlow } from "../document/open-flow.ts";
import { locateFlow, type Workspace } from "../document/workspace.ts";
import type { Owner } from "../locking/owner.ts";
import { type OnceResult, runOnce } from "../once/once.ts";
import { wasKilled } from "../once/record.ts";
import { changeFlow, releaseFlow } from "./change.ts";
import type { Plan, PlanStep } from "./plan.ts";
import { resumeFlow } from "./resume.ts";
import { startFlow } from "./start.ts";

/** A plan to execute, and by whom. */
export interface ExecRequest {
  readonly plan: Plan;
  /** The base of relative `cwd`s of steps. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The owner of the lock: this process, since the work ends with it. */
  readonly me: Owner;
  /** Keys of steps with an unknown outcome that may run again. */
  readonly retryUnknown?: readonly string[];
  readonly onStep?: (
    step: PlanStep,
    how: "skipped" | "running" | "ran" | "replayed",
    exitCode?: number,
  ) => void;
  readonly onStdout?: (chunk: Buffer) => void;
  readonly onStderr?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal | undefined;
}

/** How far a plan was executed. */
export type ExecResult =
  | { readonly outcome: "done" | "already-done"; readonly exitCode: 0 }
  | { readonly outcome: "failed"; readonly exitCode: number; readonly step: string };

/** Executes the commands of a plan as a flow, each at most once. */
export async function execPlan(workspace: Workspace, request: ExecRequest): Promise<ExecResult> {
  const { plan, me } = request;
  requireSteps(plan, request.retryUnknown ?? []);
  const flow = await begin(workspace, request);
  if (flow === undefined) return { outcome: "already-done", exitCode: 0 };
  try {
    const failed = await runSteps(workspace, request, flow);
    if (failed !== undefined) return failed;
    await changeFlow(workspace, plan, { status: "done" }, me);
    crashPoint("flow.exec.done");
    return { outcome: "done", exitCode: 0 };
  } finally {
    await releaseFlow(workspace, plan, me).catch(() => undefined);
  }
}

async function runSteps(
  workspace: Workspace,
  request: ExecRequest,
  flow: FlowDocument,
): Promise<Extract<ExecResult, { outcome: "failed" }> | undefined> {
  const { plan, me, onStep, signal } = request;
  const completed = new Set(flow.completedSteps);
  for (const [i, step] of plan.steps.entries()) {
    if (completed.has(step.key)) {
      onStep?.(step, "skipped");
      continue;
    }
    if (signal?.aborted) throw interruptedError(plan, step, CONTINUES);
    const result = await runStep(workspace, request, step);
    onStep?.(step, result.outcome, result.exitCode);
    if (result.exitCode !== 0) {
      const ending = `ended with exit code ${result.exitCode}`;
      // It did not report its own failure, so it may have taken effect.
      const unknown = wasKilled(result.exitCode) && step.retry !== "safe";
      const [status, notes] = unknown ? (["blocked", UNKNOWN_NOTE] as const) : (["failed", ending] as const);
      await changeFlow(workspace, plan, { status, step: step.key, notes: `step ${step.key}: ${notes}` }, me);
      if (signal?.aborted)
        throw interruptedError(plan, step, unknown ? checkFirstHint(plan, step) : CONTINUES);
      if (unknown)
        throw unknownError(
          plan,
          step,
          `the outcome of ${JSON.stringify(step.key)} is unknown: it ${ending}, which usually means a signal`,
        );
      return { outcome: "failed", exitCode: result.exitCode, step: step.key };
    }
    crashPoint("flow.exec.step-ended");
    const next = plan.steps[i + 1]?.key;
    await changeFlow(workspace, plan, { complete: [step.key], step: next, notes: "" }, me);
    crashPoint("flow.exec.step-completed");
  }
  return undefined;
}

async function runStep(workspace: Workspace, request: ExecRequest, step: PlanStep): Promise<OnceResult> {
  const { plan, me, onStep, retryUnknown = [] } = request;
  onStep?.(step, "running");
  try {
    return await runOnce(workspace, {
      ...request,
      workflow: plan.workflow,
      agent: plan.agent,
      key: step.key,
      command: ["/bin/sh", "-c", step.run],
      cwd: resolve(request.cwd, step.cwd ?? "."),
      env: { ...request.env, ...step.env },
      retryUnknown: step.retry === "safe" || retryUnknown.includes(step.key),
      // The step reported its own failure, so it is not finished.
      retryFailed: true,
    });
  } catch (error) {
    if (!(error instanceof LazarusError && error.code === "FLOW_OUTCOME_UNKNOWN")) throw error;
    const notes = `step ${step.key}: ${UNKNOWN_NOTE}`;
    await changeFlow(workspace, plan, { status: "blocked", step: step.key, notes }, me);
    throw unknownError(plan, step, error.message, error.details);
  }
}

/** Opens the flow of this plan for `me`, and starts or reopens it if needed. Undefined when it is already done. */
async function begin(workspace: Workspace, { plan, me }: ExecRequest): Promise<FlowDocument | undefined> {
  const { root } = workspace;
  const place = locateFlow(root, plan.workflow, plan.agent);
  const existing = place === undefined ? undefined : openFlow(root, place);
  if (
    existing === undefined ||
    (existing.idempotencyKey !== plan.idempotency && existing.status === "done")
  ) {
    const started = await start(workspace, plan, me);
    if (started === "already-done") return undefined;
  } else if (existing.idempotencyKey !== plan.idempotency) {
    throw new LazarusError(
      "FLOW_EXISTS",
      `${plan.workflow} is ${existing.status} under a different key, ${JSON.stringify(existing.idempotencyKey)}`,
      { hint: `finish that run first, or abandon it: lazarus flow complete -w ${plan.workflow}` },
    );
  } else if (existing.status === "done") {
    return undefined;
  } else {
    // The plan was requested explicitly, so a failed, blocked or expired flow is reopened.
    await changeFlow(workspace, plan, { status: "in_progress", ttlDays: plan.ttlDays ?? 7 }, me);
  }
  crashPoint("flow.exec.begun");
  const { found, passedOver } = await resumeFlow(workspace, { workflow: plan.workflow, me });
  if (found !== undefined) return found.document;
  const why = passedOver[0]?.detail ?? "its file no longer exists";
  throw new LazarusError("FLOW_FINISHED", `${plan.workflow} cannot be run: ${why}; nothing was run`, {
    hint: `lazarus flow show --workflow ${plan.workflow}, then run the same command again`,
  });
}

async function start(workspace: Workspace, plan: Plan, me: Owner): Promise<"started" | "already-done"> {
  const [first, ...rest] = plan.steps.map((step) => step.key);
  const { workflow, agent, idempotency, ttlDays } = plan;
  try {
    await startFlow(
      workspace,
      { workflow, agent, idempotency, ttlDays, step: first!, remaining: rest },
      { me },
    );
    return "started";
  } catch (error) {
    if (error instanceof LazarusError && error.code === "FLOW_ALREADY_DONE") return "already-done";
    throw error;
  }
}

const UNKNOWN_NOTE = "its outcome is unknown";

function unknownError(plan: Plan, step: PlanStep, problem: string, details: object = {}): LazarusError {
  return new LazarusError("FLOW_OUTCOME_UNKNOWN", `${plan.workflow}: ${problem}`, {
    hint: checkFirstHint(plan, step),
    details: { key: step.key, ...details },
  });
}

const CONTINUES = "the same command continues from there";

function interruptedError(plan: Plan, step: PlanStep, hint: string): LazarusError {
  const at = `${plan.workflow} was interrupted at step ${JSON.stringify(step.key)}`;
  return new LazarusError("INTERRUPTED", at, { hint });
}

/** What to do about a step whose outcome is unknown. */
function checkFirstHint({ workflow }: Plan, { key }: PlanStep): string {
  const word = shellWord(key);
  return `check whether it took effect; if so: lazarus flow update -w ${workflow} --complete ${word}; if not: the same exec with --retry-unknown ${word}`;
}

/** Throws on a misspelled key, which would otherwise be ignored. */
function requireSteps({ workflow, steps }: Plan, keys: readonly string[]): void {
  const unknown = keys.find((key) => !steps.some((step) => step.key === key));
  if (unknown === undefined) return;
  throw new LazarusError("USAGE", `${workflow} has no step ${JSON.stringify(unknown)}; nothing was run`, {
    hint: `its steps: ${steps
      .map((step) => shellWord(step.key))
      .join(" ")
      .slice(0, 400)}`,
  });
}
