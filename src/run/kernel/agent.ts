// The definition of an agent: plain data and functions written by the host. Checked when a run begins, so that a mistake
// is reported at the start and does not crash the run midway.
import type { FlexibleSchema, generateText, LanguageModel, ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import type { Reconciliation } from "../engine/ledger.ts";
import type { EffectClass, RunInfo } from "../model/types.ts";

/** What a tool receives besides its input. */
export interface ToolContext {
  /** Derived from run, step and call, and stable across resumes. Use it as the idempotency key. */
  readonly effectId: string;
  /** 1 for the first attempt, higher after a resume. */
  readonly attempt: number;
  readonly step: number;
  readonly info: RunInfo;
  /** Aborts when the run is stopped. An effect then has a grace period to finish. */
  readonly signal: AbortSignal;
}

/** A tool, and how its calls may be repeated. */
// biome-ignore lint/suspicious/noExplicitAny: a tool set holds tools with different input types.
export interface DurableTool<INPUT = any, OUTPUT = unknown> {
  readonly description?: string;
  /** A Zod schema, `jsonSchema()` of the AI SDK, or any other schema that the SDK accepts. */
  readonly inputSchema: FlexibleSchema<INPUT>;
  /** Default `once`: a call with an unknown outcome is never repeated automatically. */
  readonly effect?: EffectClass;
  /** Whether a call needs the approval of a human. Such a run waits; `approveRun` answers. */
  readonly needsApproval?: boolean | ((input: INPUT) => boolean | Promise<boolean>);
  execute(input: INPUT, context: ToolContext): Promise<OUTPUT> | OUTPUT;
  /** Required for `reconcile`: whether the effect with this id happened. */
  reconcile?(effectId: string, input: INPUT, context: ToolContext): Promise<Reconciliation> | Reconciliation;
}

/** Infers the type of a tool's input from its schema. */
export function durableTool<INPUT, OUTPUT>(tool: DurableTool<INPUT, OUTPUT>): DurableTool<INPUT, OUTPUT> {
  return tool;
}

/** Tools by name. */
export type ToolSet = Readonly<Record<string, DurableTool>>;

/** What a phase's prompt function receives. */
export interface PhaseContext {
  readonly input: string;
  readonly outputs: readonly { readonly name: string; readonly output: string }[];
}

type CallSettings = Parameters<typeof generateText>[0];

/** Settings of the AI SDK for each call of the model. Those of a phase replace those of its agent. */
export interface ModelSettings {
  readonly maxOutputTokens?: CallSettings["maxOutputTokens"];
  readonly temperature?: CallSettings["temperature"];
  readonly topP?: CallSettings["topP"];
  readonly topK?: CallSettings["topK"];
  readonly presencePenalty?: CallSettings["presencePenalty"];
  readonly frequencyPenalty?: CallSettings["frequencyPenalty"];
  readonly stopSequences?: CallSettings["stopSequences"];
  readonly seed?: CallSettings["seed"];
  readonly headers?: CallSettings["headers"];
  readonly providerOptions?: CallSettings["providerOptions"];
  readonly toolChoice?: "auto" | "none" | "required" | { readonly type: "tool"; readonly toolName: string };
  readonly activeTools?: readonly string[];
  /** Which calls need the approval of a human, as in the AI SDK. Such a run waits; `approveRun` answers. */
  readonly toolApproval?: unknown;
}

/** One part of an agent's work, with its own conversation. */
export interface Phase extends ModelSettings {
  readonly name: string;
  /** The phase's task. The outputs of earlier phases are appended to a string. */
  readonly prompt: string | ((context: PhaseContext) => string);
  readonly instructions?: string;
  /** Default: the agent's tools. */
  readonly tools?: ToolSet;
  readonly maxIterations?: number;
  readonly modelTier?: string;
  /** The output to use if the phase fails. Without it, the run fails. */
  readonly fallback?: string;
}

/** The definition of an agent. Only its id and name are stored. */
export interface Agent extends ModelSettings {
  /** Identifies the agent in records, so that a resume can find it. */
  readonly id: string;
  readonly name?: string;
  readonly instructions?: string;
  readonly tools?: ToolSet;
  readonly model?: LanguageModel;
  /** Which of the executor's `models` to use. Default: its `model`. */
  readonly modelTier?: string;
  /** Maximum model calls per phase. */
  readonly maxIterations?: number;
  readonly phases?: readonly Phase[];
  /** Limit for the whole run; restarts when the run is resumed. */
  readonly timeoutMs?: number;
  /** Limit for one model call. */
  readonly stepTimeoutMs?: number;
  /** Stream the model's answer, so that a watchdog sees activity. */
  readonly stream?: boolean;
}

/** The input of a run: a text, or the messages of an existing conversation. */
export type RunInput = string | readonly ModelMessage[];

const CLASSES: readonly string[] = ["read", "idempotent", "once", "reconcile", "nested"];
/** Settings of the AI SDK that an executor passes on. */
export const MODEL_SETTINGS = [
  ...[
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "presencePenalty",
    "frequencyPenalty",
    "stopSequences",
  ],
  ...["seed", "headers", "providerOptions", "toolChoice", "activeTools", "toolApproval"],
] as const satisfies readonly (keyof ModelSettings)[];
/** Settings of the AI SDK that an executor would silently drop: these, all callbacks and everything experimental. */
const SDK_SETTINGS =
  /^(?:stopWhen|prepareStep|prepareCall|output|repairToolCall|telemetry|on[A-Z].*|experimental_.*)$/;
const AGENT_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$/;

/** Whether a value is a valid agent id. */
export function isAgentId(id: unknown): id is string {
  return typeof id === "string" && AGENT_ID.test(id);
}

/** Throws RUN_AGENT_INVALID for the first mistake found. */
export function checkAgent(agent: Agent): void {
  const invalid = (problem: string, hint: string) =>
    new LazarusError("RUN_AGENT_INVALID", `agent ${JSON.stringify(agent?.id)}: ${problem}`, { hint });
  if (!isAgentId(agent?.id)) {
    throw invalid("invalid id", "use 1 to 200 letters, digits and ._:@/-, starting with a letter or digit");
  }
  if (agent.phases?.length === 0) throw invalid("phases is empty", "omit phases, or add one");
  for (const { maxIterations } of [agent, ...(agent.phases ?? [])]) {
    if (!isStepLimit(maxIterations)) {
      throw invalid(`maxIterations is ${String(maxIterations)}`, "use a positive integer, or omit it");
    }
  }
  for (const name of ["timeoutMs", "stepTimeoutMs"] as const) {
    const limit = agent[name];
    if (limit !== undefined && !(limit > 0)) {
      throw invalid(`${name} is ${String(limit)}`, "use more than 0 milliseconds, or omit it");
    }
  }
  for (const part of [agent, ...(agent.phases ?? [])]) {
    const [ignored] = Object.entries(part).find(([name, value]) => {
      return value !== undefined && SDK_SETTINGS.test(name);
    }) ?? [undefined];
    if (ignored === undefined) continue;
    throw invalid(
      `sets ${ignored}, which an executor does not apply`,
      "use durable(new ToolLoopAgent({ … }), { store }), which keeps every setting of the AI SDK",
    );
  }
  const sets = [agent.tools ?? {}, ...(agent.phases ?? []).map(({ tools }) => tools ?? {})];
  for (const [name, tool] of sets.flatMap((set) => Object.entries(set))) {
    if (typeof tool.execute !== "function") throw invalid(`tool ${name} has no execute function`, "add one");
    if (tool.effect !== undefined && !CLASSES.includes(tool.effect)) {
      throw invalid(
        `tool ${name} has effect ${JSON.stringify(tool.effect)}`,
        `use one of ${CLASSES.join(", ")}`,
      );
    }
    if (tool.effect === "reconcile" && typeof tool.reconcile !== "function") {
      throw invalid(
        `tool ${name} has effect "reconcile" but no reconcile function`,
        'add one, or use effect "once"',
      );
    }
  }
}

/** Whether a step limit is valid: NaN would bound nothing. */
export function isStepLimit(limit: number | undefined): boolean {
  return limit === undefined || (Number.isSafeInteger(limit) && limit > 0);
}

/** The input as messages. */
export function inputMessages(input: RunInput): ModelMessage[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : [...input];
}

/** The prompt of a phase, as the model sees it. */
export function phasePrompt(phase: Phase, context: PhaseContext): string {
  if (typeof phase.prompt === "function") return phase.prompt(context);
  const earlier = context.outputs.map(({ name, output }) => `## ${name}\n${output}`);
  return [phase.prompt, ...earlier].join("\n\n");
}
