// What an agent is: plain data and functions that its author writes. Checked when a run begins, so that a mistake is
// a sentence at the start and not a crash in the middle.
import type { FlexibleSchema, LanguageModel, ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import type { EffectClass, RunInfo } from "../model/types.ts";

/** What a tool is told about the call. */
export interface ToolContext {
  /** Made from run, step and call; the same however often the call is resumed. Hand it on as idempotency key. */
  readonly effectId: string;
  /** 1 for the first start of this call, more after a resume. */
  readonly attempt: number;
  readonly step: number;
  readonly info: RunInfo;
  /** Aborts when the run is stopped. A tool that cannot stop may go on for a few seconds of grace. */
  readonly signal: AbortSignal;
}

/** A tool's own word on a call that was interrupted. */
export type Reconciliation =
  | { readonly outcome: "done"; readonly output: unknown }
  | { readonly outcome: "not-done" }
  | { readonly outcome: "unknown" };

/** A tool with its promise about repetition. */
// biome-ignore lint/suspicious/noExplicitAny: tools of different inputs stand in one set; each knows its own.
export interface DurableTool<INPUT = any, OUTPUT = unknown> {
  readonly description?: string;
  /** Zod, `jsonSchema()` of the AI SDK, or anything else that it takes. */
  readonly inputSchema: FlexibleSchema<INPUT>;
  /** `once` unless declared: a call with unknown outcome is never repeated on a guess. */
  readonly effect?: EffectClass;
  execute(input: INPUT, context: ToolContext): Promise<OUTPUT> | OUTPUT;
  /** For `reconcile`: did the effect with this id happen? */
  reconcile?(effectId: string, input: INPUT, context: ToolContext): Promise<Reconciliation> | Reconciliation;
}

/** Types a tool's input by its schema. */
export function durableTool<INPUT, OUTPUT>(tool: DurableTool<INPUT, OUTPUT>): DurableTool<INPUT, OUTPUT> {
  return tool;
}

/** Thrown by a tool that does not know whether its effect happened: a time-out after the request went out. */
export class UnknownOutcomeError extends Error {
  override readonly name = "UnknownOutcomeError";
}

/** Tools by the name that the model calls. */
export type ToolSet = Readonly<Record<string, DurableTool>>;

/** What a phase's prompt can be made from. */
export interface PhaseContext {
  readonly input: string;
  readonly outputs: readonly { readonly name: string; readonly output: string }[];
}

/** One part of an agent's work with a conversation of its own. */
export interface Phase {
  readonly name: string;
  /** The phase's task; a text gets the outputs so far appended. */
  readonly prompt: string | ((context: PhaseContext) => string);
  readonly instructions?: string;
  /** The agent's tools unless given. */
  readonly tools?: ToolSet;
  readonly maxIterations?: number;
  readonly modelTier?: string;
  /** Set for a phase that may fail: this stands in for its output. */
  readonly fallback?: string;
}

/** A definition of an agent. Plain data and functions; nothing of it is stored but its id and name. */
export interface Agent {
  /** Names the agent in records; resume finds it by this. */
  readonly id: string;
  readonly name?: string;
  readonly instructions?: string;
  readonly tools?: ToolSet;
  readonly model?: LanguageModel;
  /** Which of the executor's models; `default` unless told. */
  readonly modelTier?: string;
  /** Model calls per phase. */
  readonly maxIterations?: number;
  readonly phases?: readonly Phase[];
  /** For the whole run, from the moment this process takes it up. */
  readonly timeoutMs?: number;
  /** For one model call. */
  readonly stepTimeoutMs?: number;
  /** Stream the model's answer, so that a watchdog sees that it is alive. */
  readonly stream?: boolean;
}

/** What a run is asked to do: a text, or messages for a conversation that already began. */
export type RunInput = string | readonly ModelMessage[];

const CLASSES: readonly string[] = ["read", "idempotent", "once", "reconcile"];
const AGENT_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$/;

/** Whether a text can name an agent in records and lists. */
export function isAgentId(id: unknown): id is string {
  return typeof id === "string" && AGENT_ID.test(id);
}

/** Throws RUN_AGENT_INVALID with the first thing that is wrong. */
export function checkAgent(agent: Agent): void {
  const wrong = (what: string, hint: string) =>
    new LazarusError("RUN_AGENT_INVALID", `agent ${JSON.stringify(agent?.id)}: ${what}`, { hint });
  if (!isAgentId(agent?.id)) {
    throw wrong(
      "its id is not usable",
      "use 1 to 200 letters, digits and ._:@/- beginning with a letter or digit",
    );
  }
  if (agent.phases?.length === 0)
    throw wrong("it has an empty list of phases", "leave phases out, or name one");
  for (const { maxIterations } of [agent, ...(agent.phases ?? [])]) {
    if (!isStepLimit(maxIterations)) {
      throw wrong(
        `maxIterations is ${String(maxIterations)}`,
        "use a whole number from 1 up, or leave it out",
      );
    }
  }
  for (const name of ["timeoutMs", "stepTimeoutMs"] as const) {
    const limit = agent[name];
    if (limit !== undefined && !(limit > 0)) {
      throw wrong(`${name} is ${String(limit)}`, "use milliseconds above 0, or leave it out");
    }
  }
  const sets = [agent.tools ?? {}, ...(agent.phases ?? []).map(({ tools }) => tools ?? {})];
  for (const [name, tool] of sets.flatMap((set) => Object.entries(set))) {
    if (typeof tool.execute !== "function") throw wrong(`tool ${name} has no execute`, "give it one");
    if (tool.effect !== undefined && !CLASSES.includes(tool.effect)) {
      throw wrong(
        `tool ${name} has effect ${JSON.stringify(tool.effect)}`,
        `use one of ${CLASSES.join(", ")}`,
      );
    }
    if (tool.effect === "reconcile" && typeof tool.reconcile !== "function") {
      throw wrong(
        `tool ${name} is declared reconcile without a reconcile function`,
        "write one, or declare it once",
      );
    }
    if ("needsApproval" in tool && tool.needsApproval) {
      throw wrong(`tool ${name} needs approval, which durable runs cannot ask for`, "ask inside the tool");
    }
  }
}

/** Whether a run can be bounded by it: a limit that is no number would bound nothing. */
export function isStepLimit(limit: number | undefined): boolean {
  return limit === undefined || (Number.isSafeInteger(limit) && limit > 0);
}

/** Turns what the caller handed in into messages. */
export function inputMessages(input: RunInput): ModelMessage[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : [...input];
}

/** The task of a phase as the model sees it. */
export function phasePrompt(phase: Phase, context: PhaseContext): string {
  if (typeof phase.prompt === "function") return phase.prompt(context);
  const sofar = context.outputs.map(({ name, output }) => `## ${name}\n${output}`);
  return [phase.prompt, ...sofar].join("\n\n");
}
