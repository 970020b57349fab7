import { LazarusError } from "../../../platform/errors.ts";
import { type Event, openRegistry } from "../../../registry/registry.ts";
import { defineCommand } from "../../command.ts";
import { formatTime } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Prints the event log, oldest first: new cells, missed heartbeats, checkpoints, restores, deaths and revivals. With " +
    "--json each event is one line.",
  positionals: [{ name: "mission", summary: "only this mission", optional: true }],
  options: {
    follow: { type: "flag", short: "f", summary: "wait for new events until interrupted" },
    last: { type: "number", short: "n", value: "N", summary: "only the newest N (default 50; 0 for all)" },
    after: { type: "number", value: "SEQ", summary: "only events after this sequence number" },
  },
  examples: [
    ["lazarus events", "the newest 50 events"],
    ["lazarus events tidy-inbox -f", "follow one mission"],
    ["lazarus events --json --last 0 > events.jsonl", "export all events"],
  ],
  exits: ["damaged", "unsupported", "machine"],
  async run(context, { args, options }) {
    const mission = args.mission === undefined ? undefined : context.mission(args.mission);
    using registry = openRegistry(context.machine, context.config.config.registry_file);
    const last = options.last ?? 50;
    if (!Number.isSafeInteger(last))
      throw new LazarusError("USAGE", "--last takes a whole number", { hint: "lazarus events --last 20" });
    let seen = options.after ?? 0;
    const show = (events: Event[]) => {
      for (const event of events) {
        seen = event.seq;
        context.emit("event/1", event, () => `${line(event)}\n`);
      }
    };
    // Installs the signal handlers before the first output: the caller may interrupt right after it.
    const signal = options.follow ? context.signal : undefined;
    show(registry.events({ mission, afterSeq: seen, ...(last > 0 ? { last } : {}) }));
    if (!options.follow && seen === 0)
      context.say("no events yet; create a cell with: lazarus init <mission>");
    while (signal !== undefined && !signal.aborted) {
      await context.machine.clock.sleep(POLL_MS, signal);
      show(registry.events({ mission, afterSeq: seen }));
    }
    return 0;
  },
});

const POLL_MS = 250;

function line(event: Event): string {
  const facts = Object.entries(event.data)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${formatTime(event.time_ms)}  ${event.kind.padEnd(13)}  ${escapeControls([event.mission ?? "-", ...facts].join("  "))}`;
}
