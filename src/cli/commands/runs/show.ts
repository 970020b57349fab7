import { DEFAULT_DEATHS } from "../../../run/kernel/recover.ts";
import type { Effect, RunRecord, TranscriptEntry } from "../../../run/model/types.ts";
import { defineCommand } from "../../command.ts";
import { formatTime } from "../../render/format.ts";
import { harmless, type Painter } from "../../render/paint.ts";
import { findRun, STORE_OPTIONS, sameStore } from "./places.ts";

export const command = defineCommand({
  about:
    "Shows one run: where it stands, what was said step by step, and every effect with its state. An encrypted store " +
    "is read with the key in LAZARUS_RUN_KEY (base64).",
  positionals: [{ name: "run", summary: "id of the run, or the beginning of it" }],
  options: { ...STORE_OPTIONS, full: { type: "flag", summary: "do not shorten long messages" } },
  examples: [
    ["lazarus runs show 20261115-235301-x7k2p9", "transcript, steps, effects"],
    ["lazarus runs show 2026 --json | jq .effects", "for other programs"],
  ],
  exits: ["missing", "damaged", "unsupported", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const record = (await opened.load(runId))!;
    context.emit("run/1", { ...record }, () => render(record, options.full, context.paint));
    const unknown = record.effects.find(({ state }) => state === "unknown");
    if (unknown) {
      context.say(
        `find out whether ${unknown.id} happened, then: lazarus runs resolve ${unknown.id}${sameStore(options)} --done | --retry | --fail`,
      );
    }
    const { deaths, status } = record.head;
    if (status === "running" && deaths >= DEFAULT_DEATHS) {
      context.say(
        `its host no longer resumes it by itself; when it is mended: lazarus runs retry ${runId}${sameStore(options)}`,
      );
    }
    return 0;
  },
});

const SHORT = 400;

function render(
  { head, info, transcript, phases, effects, output, error }: RunRecord,
  full: boolean,
  paint: Painter,
): string {
  const lines = [
    `${paint.bold(head.runId)}  ${harmless(info.agentName)}  ${head.status}  step ${head.step}  ${formatTime(head.updatedAtMs)}`,
    `began ${formatTime(head.createdAtMs)}, ${head.usage.inputTokens} tokens in, ${head.usage.outputTokens} out, epoch ${head.epoch}`,
  ];
  if (head.forkOf !== null) lines.push(`forked from ${head.forkOf} at step ${head.forkStep}`);
  if (head.deaths > 1) lines.push(`taken up ${head.deaths} times since its last step`);
  if (head.redactions > 0) lines.push(`${head.redactions} secrets were redacted`);
  for (const { position, name, output: said, fellBack } of phases) {
    lines.push(
      `phase ${position} ${harmless(name)}${fellBack ? " (fallback)" : ""}: ${shorten(harmless(said), full)}`,
    );
  }
  let step = -1;
  for (const entry of transcript) {
    if (entry.step !== step) {
      step = entry.step;
      lines.push("", paint.bold(step === 0 ? "input" : `step ${step}`));
    }
    lines.push(...describe(entry).map((line) => `  ${shorten(harmless(line), full)}`));
  }
  if (effects.length > 0) lines.push("", paint.bold("effects"));
  for (const effect of effects) lines.push(`  ${describeEffect(effect, paint)}`);
  if (error !== null) lines.push("", `${paint.red("error")}: ${harmless(error.message)}`);
  if (output !== null) lines.push("", `${paint.bold("output")}: ${shorten(harmless(output), full)}`);
  return `${lines.join("\n")}\n`;
}

function describe({ message }: TranscriptEntry): string[] {
  if (typeof message.content === "string") return [`${message.role}: ${message.content}`];
  return message.content.map((part) => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return `${message.role}: ${part.text}`;
      case "tool-call":
        return `${message.role} calls ${part.toolName} ${JSON.stringify(part.input)}`;
      case "tool-result":
        return `${part.toolName} answers ${JSON.stringify("value" in part.output ? part.output.value : part.output)}`;
      default:
        return `${message.role}: [${part.type}]`;
    }
  });
}

function describeEffect(effect: Effect, paint: Painter): string {
  const colour = {
    done: paint.green,
    failed: paint.yellow,
    unknown: paint.red,
    started: paint.red,
    prepared: paint.dim,
  };
  const tries = effect.attempts > 1 ? `, started ${effect.attempts} times` : "";
  const why = effect.error === null ? "" : `: ${harmless(effect.error)}`;
  return `${effect.id}  ${colour[effect.state](effect.state)}  ${harmless(effect.tool)} (${effect.class}${tries})${why}`;
}

function shorten(text: string, full: boolean): string {
  return full || text.length <= SHORT ? text : `${text.slice(0, SHORT)}… (${text.length} characters)`;
}
