// Which alerts to send now: a pure function of the event log. The log records every delivery, so each target gets an event
// once, however often the pit is killed. An attempt is recorded before it starts and after it ends (INV-5): one that
// was interrupted may have arrived, and is repeated with `repeat` set. A duplicate alert beats a missed one.
import type { Event } from "../registry/registry.ts";

export const ALERT_TARGETS = ["command", "webhook", "ntfy"] as const;
export type AlertTarget = (typeof ALERT_TARGETS)[number];

/** The data of an event of kind `delivery`: one attempt to send an alert. */
export interface Delivery {
  /** The `seq` of the event that was sent. */
  readonly event: number;
  readonly target: AlertTarget;
  readonly attempt: number;
  readonly state: "sending" | "delivered" | "failed" | "given-up";
  readonly problem: string | null;
}

export interface AlertRules {
  /** Kinds of events to send. */
  readonly kinds: readonly string[];
  readonly targets: readonly AlertTarget[];
  /** Older events are not sent: after a change of the config, or a long time without a pit, they are no longer news. */
  readonly maxAgeMs: number;
}

export interface Attempt {
  readonly event: Event;
  readonly target: AlertTarget;
  readonly attempt: number;
  /** An earlier attempt was interrupted and may have arrived. */
  readonly repeat: boolean;
}

export interface AlertPlan {
  readonly due: readonly Attempt[];
  /** Not retried; to be recorded as given up. */
  readonly givenUp: readonly Attempt[];
  /** When the next retry is due; undefined when there is none. */
  readonly nextAtMs: number | undefined;
  /** The `seq` of events that need no further attempt. */
  readonly closed: ReadonlySet<number>;
}

/** The pause after each failure. After the last one, the event is given up for this target. */
const BACKOFF_MS = [10_000, 30_000, 120_000, 600_000, 1_800_000] as const;
export const MAX_ATTEMPTS = BACKOFF_MS.length + 1;

/** `log` holds the events and deliveries so far, in order; `running` the keys of attempts that this process is making. */
export function planAlerts(
  log: readonly Event[],
  rules: AlertRules,
  running: ReadonlySet<string>,
  nowMs: number,
): AlertPlan {
  const last = new Map<string, { delivery: Delivery; atMs: number }>();
  /** At least one attempt has no recorded end. */
  const interrupted = new Set<string>();
  for (const event of log) {
    const delivery = readDelivery(event);
    if (delivery === undefined) continue;
    const key = deliveryKey(delivery.event, delivery.target);
    if (delivery.state === "sending" && last.get(key)?.delivery.state === "sending") interrupted.add(key);
    last.set(key, { delivery, atMs: event.time_ms });
  }
  const due: Attempt[] = [];
  const givenUp: Attempt[] = [];
  const closed = new Set<number>();
  let nextAtMs: number | undefined;
  for (const event of log) {
    if (event.kind === "delivery" || !rules.kinds.includes(event.kind)) continue;
    let open = false;
    for (const target of rules.targets) {
      const key = deliveryKey(event.seq, target);
      const before = last.get(key);
      const verdict = running.has(key) ? "wait" : classifyDelivery(event, before, rules, nowMs);
      if (verdict === "done") continue;
      open = true;
      const attempt = (before?.delivery.attempt ?? 0) + 1;
      const repeat = interrupted.has(key) || before?.delivery.state === "sending";
      if (verdict === "now") due.push({ event, target, attempt, repeat });
      else if (verdict === "give-up") givenUp.push({ event, target, attempt: attempt - 1, repeat });
      else if (verdict !== "wait") nextAtMs = Math.min(nextAtMs ?? verdict, verdict);
    }
    if (!open) closed.add(event.seq);
  }
  return { due, givenUp, nextAtMs, closed };
}

function classifyDelivery(
  event: Event,
  before: { delivery: Delivery; atMs: number } | undefined,
  rules: AlertRules,
  nowMs: number,
): "now" | "done" | "give-up" | number {
  if (before === undefined) return nowMs - event.time_ms > rules.maxAgeMs ? "done" : "now";
  const { state, attempt } = before.delivery;
  if (state === "delivered" || state === "given-up") return "done";
  if (attempt >= MAX_ATTEMPTS) return "give-up";
  if (state === "sending") return "now";
  const atMs = before.atMs + BACKOFF_MS[Math.min(attempt, BACKOFF_MS.length) - 1]!;
  return atMs <= nowMs ? "now" : atMs;
}

export function deliveryKey(event: number, target: AlertTarget): string {
  return `${event} ${target}`;
}

/** The delivery of a `delivery` event; undefined for every other event. */
function readDelivery({ kind, data }: Event): Delivery | undefined {
  if (kind !== "delivery" || typeof data.event !== "number") return undefined;
  if (!(ALERT_TARGETS as readonly unknown[]).includes(data.target)) return undefined;
  return data as unknown as Delivery;
}
