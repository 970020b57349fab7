// `durableCall(store, { runId }, { model, tools, … })`: generateText and streamText as a durable run. The settings are code and
// have to be passed again to continue the run; only its input, responses and effects are stored.
import {
  type GenerateTextResult,
  generateText,
  type StreamTextResult,
  streamText,
  type Tool,
  type ToolSet,
} from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { checkOptions, checkRun } from "../model/check-options.ts";
import { generateChild, streamChild } from "./child.ts";
import { type DurableStore, definitionOf, type RunReference, type StreamReference } from "./durable-agent.ts";
import { withEarlierCalls } from "./follow.ts";
import { generate, type Loop, stream } from "./loop.ts";
import { openRun, type RunKind, type RunParameters } from "./open-run.ts";
import { type Settings, withSeams } from "./seam.ts";
import type { EffectRule } from "./tools.ts";

type GenerateSettings<TOOLS extends ToolSet> = Parameters<typeof generateText<TOOLS>>[0];
type StreamSettings<TOOLS extends ToolSet> = Parameters<typeof streamText<TOOLS>>[0];

/** The run of a durable call. */
export interface CallOptions<TOOLS extends ToolSet> extends Omit<RunParameters, "queue" | "priority"> {
  /** Names what runs, for lists. Default "call". */
  readonly agentId?: string;
  readonly effects?: {
    readonly [NAME in keyof NoInfer<TOOLS>]?: EffectRule<
      TOOLS[NAME] extends Tool<infer INPUT> ? INPUT : never
    >;
  };
  readonly approvalMs?: number;
  readonly graceMs?: number;
}

/** `generateText` and `streamText` whose run survives its process. */
export function durableCall<TOOLS extends ToolSet>(
  store: DurableStore,
  options: CallOptions<TOOLS>,
  settings: GenerateSettings<TOOLS> & StreamSettings<TOOLS>,
): {
  generate(): Promise<GenerateTextResult<TOOLS, never, never> & RunReference>;
  stream(): Promise<StreamTextResult<TOOLS, never, never> & StreamReference>;
} {
  checkOptions({ store, ...options });
  checkRun({ ...options });
  const { effects = {}, agentId = "call", graceMs = 5000, approvalMs, detach, ...parameters } = options;
  if ("queue" in parameters && parameters.queue !== undefined) {
    throw new LazarusError(
      "RUN_UNSUPPORTED",
      "a durable call cannot wait in a queue: only its caller has its settings",
      {
        hint: "durable(new ToolLoopAgent({ id, … }), { store }) and agent.generate({ queue, … })",
      },
    );
  }
  const seams = { effects: effects as Readonly<Record<string, EffectRule>> };
  const kind: RunKind = { agentId, definition: definitionOf(settings), onChange: "continue", graceMs };
  const loop: Loop = {
    generate: (run, call) => generateText(withSeams(call, run, seams) as never) as never,
    stream: (run, call) => streamText(withSeams(call, run, seams) as never) as never,
  };
  const how = { approvalMs, detach };
  return {
    generate: () =>
      generateChild(
        ...[store.log, parameters.runId],
        (child) => openRun(store.log, kind, "generate", { ...parameters, child }, settings),
        (session) => generate(loop, session, settings as Settings, how),
      ) as never,
    stream: () =>
      streamChild(
        ...[store.log, parameters.runId],
        (child) => openRun(store.log, kind, "stream", { ...parameters, child }, settings),
        async (session, isChild) => {
          const result = await stream(loop, session, settings as Settings, how);
          return (isChild ? await withEarlierCalls(loop, session, result, kind) : result) as never;
        },
      ),
  };
}
