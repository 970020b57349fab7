// Prometheus metrics: rendering from plain data, counters that follow the event log (each scrape reads only new events),
// and histograms of durations.
import type { UnseenCounts } from "../pit/live/live-points.ts";
import type { Event } from "../registry/registry.ts";
import type { EventPage, PitPort } from "./port.ts";

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
  /** Appended to the family's name: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter" | "histogram";
  readonly samples: readonly Sample[];
}

export function renderMetrics(families: readonly Family[]): string {
  return families
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(
        ({ labels, value, suffix = "" }) => `${name}${suffix}${renderLabels(labels)} ${value}`,
      );
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n");
    })
    .join("\n")
    .concat("\n");
}

function renderLabels(labels: Readonly<Record<string, string>> = {}): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** The version and the uptime. */
export function processFamilies(version: string, uptimeSeconds: number): Family[] {
  return [
    {
      name: "lazarus_info",
      help: "Version of Lazarus.",
      type: "gauge",
      samples: [{ labels: { version }, value: 1 }],
    },
    {
      name: "lazarus_uptime_seconds",
      help: "Time since the pit started.",
      type: "gauge",
      samples: [{ value: uptimeSeconds }],
    },
  ];
}

/** Cells and agents by state. States with a count of 0 are included, so that alerts can refer to them. */
export function countFamilies({ cells, agents }: Awaited<ReturnType<PitPort["counts"]>>): Family[] {
  return [
    gauges("lazarus_cells", "Cells by status.", "status", cells),
    gauges("lazarus_agents", "Agents by state.", "state", agents),
  ];
}

export function unhandledFamily(seconds: number): Family {
  return {
    name: "lazarus_oldest_unhandled_death_seconds",
    help: "Age of the oldest unhandled death; 0 if there is none.",
    type: "gauge",
    samples: [{ value: seconds }],
  };
}

/** What audits found and the watch of a cell had not reported. */
export function watchFamilies({ missed, invisible }: UnseenCounts): Family[] {
  const counter = (name: string, help: string, value: number): Family => ({
    name,
    help,
    type: "counter",
    samples: [{ value }],
  });
  return [
    counter("lazarus_watch_missed_total", "Changes that the watch of a cell missed; must be 0.", missed),
    counter("lazarus_watch_invisible_total", "Changes that no watch can see, found by audits.", invisible),
  ];
}

function gauges(name: string, help: string, label: string, counts: Readonly<Record<string, number>>): Family {
  const samples = Object.entries(counts).map(([key, value]) => ({ labels: { [label]: key }, value }));
  return { name, help, type: "gauge", samples };
}

const TOTALS = {
  death: ["lazarus_deaths_total", "Agents that crashed."],
  stall: ["lazarus_stalls_total", "Agents that stalled."],
  departure: ["lazarus_departures_total", "Agents that exited or were stopped."],
  revival: ["lazarus_revivals_total", "Agents revived."],
  tombstone: ["lazarus_tombstones_total", "Missions that are no longer revived."],
  checkpoint: ["lazarus_checkpoints_total", "Checkpoints taken."],
} as const;

const PAGE_EVENTS = 1000;

/** Counts all events of the log; each call reads only those added since the last one. */
export function createEventCounters(events: (page: EventPage) => readonly Event[]) {
  const counts = new Map<string, number>();
  const durations = { checkpoint: createHistogram(), revival: createHistogram() };
  let seq = 0;
  return {
    families(): Family[] {
      for (;;) {
        const page = events({ afterSeq: seq, first: PAGE_EVENTS });
        for (const { kind, data } of page) {
          counts.set(kind, (counts.get(kind) ?? 0) + 1);
          const tookMs = data.took_ms;
          if (typeof tookMs === "number" && (kind === "checkpoint" || kind === "revival"))
            durations[kind].observe(tookMs / 1000);
        }
        seq = page.at(-1)?.seq ?? seq;
        if (page.length < PAGE_EVENTS) break;
      }
      const totals = Object.entries(TOTALS).map(
        ([kind, [name, help]]): Family => ({
          name,
          help,
          type: "counter",
          samples: [{ value: counts.get(kind) ?? 0 }],
        }),
      );
      const all = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
      return [
        ...totals,
        {
          name: "lazarus_events_total",
          help: "Events by kind.",
          type: "counter",
          samples: all.map(([kind, value]) => ({ labels: { kind }, value })),
        },
        {
          name: "lazarus_checkpoint_duration_seconds",
          help: "Duration of checkpoints, if recorded.",
          type: "histogram",
          samples: durations.checkpoint.samples(),
        },
        {
          name: "lazarus_revival_duration_seconds",
          help: "Time from a death to the next life, if recorded.",
          type: "histogram",
          samples: durations.revival.samples(),
        },
      ];
    },
  };
}

const BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

export interface Histogram {
  observe(seconds: number): void;
  samples(labels?: Readonly<Record<string, string>>): Sample[];
}

export function createHistogram(): Histogram {
  const counts = BUCKETS_SECONDS.map(() => 0);
  let total = 0;
  let sum = 0;
  return {
    observe(seconds) {
      total += 1;
      sum += seconds;
      const bucket = BUCKETS_SECONDS.findIndex((limit) => seconds <= limit);
      if (bucket !== -1) counts[bucket]! += 1;
    },
    samples(labels = {}) {
      let below = 0;
      const buckets = BUCKETS_SECONDS.map((limit, i): Sample => {
        below += counts[i]!;
        return { suffix: "_bucket", labels: { ...labels, le: String(limit) }, value: below };
      });
      return [
        ...buckets,
        { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: total },
        { suffix: "_sum", labels, value: sum },
        { suffix: "_count", labels, value: total },
      ];
    },
  };
}

/** Requests by route and status. Routes come from the table, so unknown paths add no rows. */
export function createRequestTimer() {
  const rows = new Map<string, { route: string; status: string; histogram: Histogram }>();
  return {
    observe(route: string, status: number, seconds: number): void {
      const kind = `${Math.floor(status / 100)}xx`;
      const key = `${route} ${kind}`;
      const row = rows.get(key) ?? { route, status: kind, histogram: createHistogram() };
      rows.set(key, row);
      row.histogram.observe(seconds);
    },
    family(): Family {
      const samples = [...rows.values()].flatMap(({ route, status, histogram }) =>
        histogram.samples({ route, status }),
      );
      return {
        name: "lazarus_http_request_duration_seconds",
        help: "Duration of requests.",
        type: "histogram",
        samples,
      };
    },
  };
}
