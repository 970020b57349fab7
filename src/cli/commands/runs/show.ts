import { DEFAULT_DEATHS } from "../../../run/log/lease.ts";
import { plainJson, plainText } from "../../../run/log/plain-json.ts";
import { readRecord } from "../../../run/log/read.ts";
import type { Effect, RunRecord, TranscriptEntry } from "../../../run/model/types.ts";
import { describeWait } from "../../../run/operations/list.ts";
import { type RunView, showRun } from "../../../run/operations/show.ts";
import { formatCount, formatTime } from "../../render/format.ts";
import { escapeControls, type Painter } from "../../render/paint.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";
import { sameStore } from "./same-store.ts";

export const command = defineRunsCommand({
  about:
    "Prints one run: its status, the transcript step by step, every effect with its state, what it waits for, unread " +
    "messages, its child runs, and its token usage. An encrypted store is read with the key in LAZARUS_RUN_KEY " +
    "(base64).",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: { ...STORE_OPTIONS, full: { type: "flag", summary: "do not shorten long messages" } },
  examples: [
    ["lazarus runs show 20261115-235301-x7k2p9", "print transcript, steps and effects"],
    ["lazarus runs show 2026 --json | jq .effects", "effects as JSON"],
  ],
  exits: ["missing", "damaged", "unsupported", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const record = (await readRecord(opened.log, runId))!;
    const view = await showRun(opened.log, runId);
    const { summary, waits, inbox, children, totalUsage } = view;
    const { thread, caller, queue, priority, wakeMs, cancelMs } = summary;
    const around = { thread, caller, queue, priority, wakeMs, cancelMs, waits, inbox, children, totalUsage };
    context.emit("run/1", plainJson({ ...record, ...around }) as object, () =>
      [render(record, options.full, context.paint), renderRelated(view, options.full, context.paint)].join(
        "",
      ),
    );
    for (const line of nextSteps(record, view)) context.say(line.replaceAll("STORE", sameStore(options)));
    return 0;
  },
});

/** What to type next; STORE stands for the options of the store. */
function nextSteps({ head, effects }: RunRecord, { waits }: RunView): string[] {
  const { runId, deaths, status } = head;
  const lines: string[] = [];
  const unknown = effects.find(({ state }) => state === "unknown");
  if (unknown) {
    lines.push(
      `check whether ${unknown.id} happened, then: lazarus runs resolve ${unknown.id}STORE --done | --retry | --fail`,
    );
  }
  const open = waits.filter(({ state }) => state === "open");
  for (const { id } of open.filter(({ kind }) => kind === "approval")) {
    lines.push(`to answer: lazarus runs approve ${runId}STORE --request ${id} [--deny]`);
  }
  if (open.some(({ kind }) => kind !== "approval"))
    lines.push(`to end the wait: lazarus runs wake ${runId}STORE`);
  if (status === "running" && deaths >= DEFAULT_DEATHS) {
    lines.push(`its host no longer resumes it; after fixing the cause: lazarus runs retry ${runId}STORE`);
  }
  return lines;
}

/** Lines about queue, waits, inbox and child runs; empty when there is nothing. */
function renderRelated(
  { summary, waits, inbox, children, totalUsage }: RunView,
  full: boolean,
  paint: Painter,
): string {
  const lines: string[] = [];
  const { thread, caller, queue, cancelMs } = summary;
  const places = Object.entries({ thread, caller, queue }).filter(([, value]) => value !== null);
  if (places.length > 0)
    lines.push(places.map(([name, value]) => `${name} ${escapeControls(value!)}`).join(", "));
  if (cancelMs !== null) lines.push(`cancellation requested at ${formatTime(cancelMs)}`);
  if (waits.length > 0) lines.push("", paint.bold("waits"));
  for (const { id, kind, names, state, dueMs, input } of waits) {
    const until = dueMs === null ? "" : ` until ${formatTime(dueMs)}`;
    const what = input === undefined ? "" : ` ${shorten(plainText(input), full)}`;
    lines.push(`  ${id}  ${state}  ${escapeControls(describeWait({ kind, names }) + what)}${until}`);
  }
  if (inbox.length > 0) lines.push("", paint.bold("inbox"));
  for (const { id, name, value } of inbox) {
    lines.push(`  ${escapeControls(`${id}  ${name}  ${shorten(plainText(value), full)}`)}`);
  }
  if (children.length > 0) lines.push("", paint.bold("child runs"));
  for (const child of children) {
    lines.push(`  ${child.runId}  ${escapeControls(child.agentId)}  ${child.status}  step ${child.step}`);
  }
  if (children.length > 0) {
    lines.push(`  with them: ${totalUsage.inputTokens} tokens in, ${totalUsage.outputTokens} out`);
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

const SHORT = 400;

function render(
  { head, info, transcript, phases, effects, output, error }: RunRecord,
  full: boolean,
  paint: Painter,
): string {
  const lines = [
    `${paint.bold(head.runId)}  ${escapeControls(info.agentName)}  ${head.status}  step ${head.step}  ${formatTime(head.updatedAtMs)}`,
    `started ${formatTime(head.createdAtMs)}, ${head.usage.inputTokens} tokens in, ${head.usage.outputTokens} out, epoch ${head.epoch}`,
  ];
  if (head.forkOf !== null) lines.push(`forked from ${head.forkOf} at step ${head.forkStep}`);
  if (head.deaths > 1) lines.push(`started ${head.deaths} times since its last step`);
  if (head.redactions > 0) lines.push(`redacted: ${formatCount(head.redactions, "secret")}`);
  for (const { position, name, output: result, fellBack } of phases) {
    lines.push(
      `phase ${position} ${escapeControls(name)}${fellBack ? " (fallback)" : ""}: ${shorten(escapeControls(result), full)}`,
    );
  }
  let step = -1;
  for (const entry of transcript) {
    if (entry.step !== step) {
      step = entry.step;
      lines.push("", paint.bold(step === 0 ? "input" : `step ${step}`));
    }
    lines.push(...describe(entry).map((line) => `  ${shorten(escapeControls(line), full)}`));
  }
  if (effects.length > 0) lines.push("", paint.bold("effects"));
  for (const effect of effects) lines.push(`  ${describeEffect(effect, paint)}`);
  if (error !== null) lines.push("", `${paint.red("error")}: ${escapeControls(error.message)}`);
  if (output !== null) lines.push("", `${paint.bold("output")}: ${shorten(escapeControls(output), full)}`);
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
        return `${message.role} calls ${part.toolName} ${plainText(part.input)}`;
      case "tool-result":
        return `${part.toolName} returns ${plainText("value" in part.output ? part.output.value : part.output)}`;
      default:
        return `${message.role}: [${part.type}]`;
    }
  });
}

function describeEffect(effect: Effect, paint: Painter): string {
  const color = {
    done: paint.green,
    failed: paint.yellow,
    unknown: paint.red,
    started: paint.red,
    prepared: paint.dim,
  };
  const tries = effect.attempts > 1 ? `, started ${effect.attempts} times` : "";
  const why = effect.error === null ? "" : `: ${escapeControls(effect.error)}`;
  return `${effect.id}  ${color[effect.state](effect.state)}  ${escapeControls(effect.tool)} (${effect.class}${tries})${why}`;
}

function shorten(text: string, full: boolean): string {
  return full || text.length <= SHORT ? text : `${text.slice(0, SHORT)}… (${text.length} characters)`;
}
