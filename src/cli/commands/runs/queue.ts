import { LazarusError } from "../../../platform/errors.ts";
import type { QueueSettings, RateLimit } from "../../../run/journal/queue.ts";
import { listQueues, type QueueView, setQueue } from "../../../run/operations/queue.ts";
import type { CliContext } from "../../context.ts";
import { renderTable } from "../../render/table.ts";
import { defineRunsCommand } from "./define.ts";
import { openOnly, STORE_OPTIONS } from "./places.ts";

const UNITS: Readonly<Record<string, number>> = { s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };

export const command = defineRunsCommand({
  about:
    "Shows the queues of a store, or sets the limits of one. Limits count runs that are being executed; a waiting run holds " +
    "no slot. Every process that works for the queue uses them from its next run on. A limit of 0 pauses the queue; -1 " +
    "removes a limit.",
  positionals: [{ name: "queue", summary: "name of the queue", optional: true }],
  options: {
    ...STORE_OPTIONS,
    total: { type: "text", value: "N", summary: "runs at the same time" },
    "per-worker": { type: "text", value: "N", summary: "runs of one process at the same time" },
    "per-caller": { type: "text", value: "N", summary: "runs of one caller at the same time" },
    "per-model": { type: "text", value: "N", summary: "runs with one model at the same time" },
    calls: { type: "text", value: "N/UNIT", summary: "model calls, such as 60/min (s, min, h, d)" },
    tokens: { type: "text", value: "N/UNIT", summary: "tokens, such as 100000/min" },
    clear: { type: "flag", summary: "remove all limits" },
  },
  examples: [
    ["lazarus runs queue --mission tidy-inbox", "all queues of a cell"],
    ["lazarus runs queue mail --total 10 --per-caller 2 --calls 60/min --mission tidy-inbox", "set limits"],
  ],
  exits: ["missing", "damaged", "machine"],
  async run(context, { args, options }) {
    const changes = {
      ...{ total: options.total, perWorker: options["per-worker"], perCaller: options["per-caller"] },
      ...{ perModel: options["per-model"], calls: options.calls, tokens: options.tokens },
    };
    const isChange = options.clear || Object.values(changes).some((value) => value !== undefined);
    if (isChange && args.queue === undefined) {
      throw new LazarusError("USAGE", "missing argument <queue>", {
        hint: "lazarus runs queue NAME --total 10",
      });
    }
    await using store = await openOnly(context, options);
    if (isChange) {
      const known = (await store.log.journal.readQueues()).get(args.queue!) ?? {};
      const settings = applyChanges(options.clear ? {} : known, changes);
      await setQueue(store.log, args.queue!, Object.keys(settings).length === 0 ? null : settings);
    }
    const all = await listQueues(store.log);
    return report(context, args.queue === undefined ? all : all.filter(({ queue }) => queue === args.queue));
  },
});

type Changes = Readonly<Partial<Record<keyof QueueSettings, string | undefined>>>;

/** The settings after the changes that were given. Pure. */
function applyChanges(known: QueueSettings, changes: Changes): QueueSettings {
  const settings: Record<string, number | RateLimit | undefined> = { ...known };
  for (const [name, text] of Object.entries(changes)) {
    if (text === undefined) continue;
    if (text === "-1") delete settings[name];
    else
      settings[name] = name === "calls" || name === "tokens" ? parseRate(name, text) : parseCount(name, text);
  }
  return settings;
}

function parseCount(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new LazarusError("USAGE", `${name} is ${JSON.stringify(text)}, not a number`, {
    hint: "use 0 or more, or -1 to remove the limit",
  });
}

function parseRate(name: string, text: string): RateLimit {
  const [, amount, unit] = /^(\d{1,12})\/(s|min|h|d)$/.exec(text) ?? [];
  if (amount !== undefined && Number(amount) > 0) return { amount: Number(amount), perMs: UNITS[unit!]! };
  throw new LazarusError("USAGE", `${name} is ${JSON.stringify(text)}, not a rate`, {
    hint: "such as 60/min",
  });
}

function report(context: CliContext, queues: readonly QueueView[]): number {
  context.emit("runs-queue/1", { queues: queues.map((queue) => ({ ...queue })) }, () =>
    queues.length === 0
      ? "no queues\n"
      : renderTable<QueueView>(
          [
            { head: "QUEUE", cell: ({ queue }) => queue, shrinks: true },
            { head: "QUEUED", cell: ({ queued }) => String(queued), alignRight: true },
            { head: "RUNNING", cell: ({ running }) => String(running), alignRight: true },
            { head: "WAITING", cell: ({ waiting }) => String(waiting), alignRight: true },
            { head: "LIMITS", cell: ({ settings }) => describeLimits(settings), shrinks: true },
          ],
          queues,
          context.terminal.columns,
        ),
  );
  return 0;
}

function describeLimits(settings: QueueSettings): string {
  const { total, perWorker, perCaller, perModel, calls, tokens } = settings;
  const counts = Object.entries({
    total,
    "per worker": perWorker,
    "per caller": perCaller,
    "per model": perModel,
  });
  const rates = Object.entries({ calls, tokens });
  const parts = [
    ...counts.flatMap(([name, limit]) => (limit === undefined ? [] : [`${limit} ${name}`])),
    ...rates.flatMap(([name, rate]) =>
      rate === undefined ? [] : [`${rate.amount} ${name}/${unitOf(rate.perMs)}`],
    ),
  ];
  return parts.length === 0 ? "-" : parts.join(", ");
}

function unitOf(perMs: number): string {
  return Object.entries(UNITS).find(([, ms]) => ms === perMs)?.[0] ?? `${perMs} ms`;
}
