import { LazarusError } from "../../../platform/errors.ts";
import { type Event, openRegistry } from "../../../registry/registry.ts";
import { defineCommand } from "../../command.ts";
import { formatTime } from "../../render/format.ts";
import { harmless } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Shows the append-only log: cells made, heartbeats missed, checkpoints, restores, deaths and revivals. Oldest " +
    "first. With --json each event is a line of its own.",
  positionals: [{ name: "mission", summary: "only this mission", optional: true }],
  options: {
    follow: { type: "flag", short: "f", summary: "wait for more until interrupted" },
    last: { type: "number", short: "n", value: "N", summary: "only the newest N (50; 0 for all)" },
    after: { type: "number", value: "SEQ", summary: "only events after this number" },
  },
  examples: [
    ["lazarus events", "the newest 50"],
    ["lazarus events tidy-inbox -f", "follow one mission"],
    ["lazarus events --json --last 0 > events.jsonl", "all of them, for other programs"],
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
    // Asked for before the first line is out: whoever reads it may interrupt at once.
    const signal = options.follow ? context.signal : undefined;
    show(registry.events({ mission, afterSeq: seen, ...(last > 0 ? { last } : {}) }));
    if (!options.follow && seen === 0)
      context.say("nothing has happened yet; make a cell with: lazarus init <mission>");
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
  return `${formatTime(event.time_ms)}  ${event.kind.padEnd(13)}  ${harmless([event.mission ?? "-", ...facts].join("  "))}`;
}
