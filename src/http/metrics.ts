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

function family(type: Family["type"], name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type, samples };
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
    family("gauge", "lazarus_info", "Version of Lazarus.", [{ labels: { version }, value: 1 }]),
    family("gauge", "lazarus_uptime_seconds", "Time since the pit started.", [{ value: uptimeSeconds }]),
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
  const help = "Age of the oldest unhandled death; 0 if there is none.";
  return family("gauge", "lazarus_oldest_unhandled_death_seconds", help, [{ value: seconds }]);
}

/** What audits found and the watch of a cell had not reported. */
export function watchFamilies({ missed, invisible }: UnseenCounts): Family[] {
  return [
    family("counter", "lazarus_watch_missed_total", "Changes that the watch of a cell missed; must be 0.", [
      { value: missed },
    ]),
    family("counter", "lazarus_watch_invisible_total", "Changes that no watch can see, found by audits.", [
      { value: invisible },
    ]),
  ];
}

function gauges(name: string, help: string, label: string, counts: Readonly<Record<string, number>>): Family {
  const samples = Object.entries(counts).map(([key, value]) => ({ labels: { [label]: key }, value }));
  return family("gauge", name, help, samples);
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
      const totals = Object.entries(TOTALS).map(([kind, [name, help]]) =>
        family("counter", name, help, [{ value: counts.get(kind) ?? 0 }]),
      );
      const all = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
      const byKind = all.map(([kind, value]) => ({ labels: { kind }, value }));
      const { checkpoint, revival } = durations;
      return [
        ...totals,
        family("counter", "lazarus_events_total", "Events by kind.", byKind),
        family(
          "histogram",
          "lazarus_checkpoint_duration_seconds",
          "Duration of checkpoints, if recorded.",
          checkpoint.samples(),
        ),
        family(
          "histogram",
          "lazarus_revival_duration_seconds",
          "Time from a death to the next life, if recorded.",
          revival.samples(),
        ),
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
      return family("histogram", "lazarus_http_request_duration_seconds", "Duration of requests.", samples);
    },
  };
}
