// Which alerts to send now: a pure function of the event log. The log itself remembers what was sent, so an event is told
// to each target once, however often the pit is killed. An attempt is entered before it begins and after it ends
// (INV-5): one that was cut off in between may have arrived, and is sent again marked as a repetition, never in silence.
import type { Event } from "../registry/registry.ts";

export const ALERT_TARGETS = ["command", "webhook", "ntfy"] as const;
export type AlertTarget = (typeof ALERT_TARGETS)[number];

/** What the log says of an attempt, in the data of an event of kind `delivery`. */
export interface Delivery {
  /** The event that was told. */
  readonly event: number;
  readonly target: AlertTarget;
  readonly attempt: number;
  readonly state: "sending" | "delivered" | "failed" | "given-up";
  readonly problem: string | null;
}

export interface AlertRules {
  /** Events of these kinds are told. */
  readonly kinds: readonly string[];
  readonly targets: readonly AlertTarget[];
  /** What is older when it is first seen is not told any more: the config was changed, or the pit was away. */
  readonly maxAgeMs: number;
}

export interface Attempt {
  readonly event: Event;
  readonly target: AlertTarget;
  readonly attempt: number;
  /** An earlier attempt was cut off and may have arrived. */
  readonly repeat: boolean;
}

export interface AlertPlan {
  readonly due: readonly Attempt[];
  /** Not tried again; to be entered in the log. */
  readonly givenUp: readonly Attempt[];
  /** When the next attempt falls due; undefined when none waits. */
  readonly nextAtMs: number | undefined;
  /** Numbers of events about which nothing is left to do. */
  readonly settled: ReadonlySet<number>;
}

/** After the first failure 10 s, then longer; after the last the target is given up for this event. */
const BACKOFF_MS = [10_000, 30_000, 120_000, 600_000, 1_800_000] as const;
export const MOST_ATTEMPTS = BACKOFF_MS.length + 1;

/** `log` holds the events to tell and the deliveries so far, in order; `underWay` what this process is sending. */
export function planAlerts(
  log: readonly Event[],
  rules: AlertRules,
  underWay: ReadonlySet<string>,
  nowMs: number,
): AlertPlan {
  const last = new Map<string, { delivery: Delivery; atMs: number }>();
  /** Told of at least once by an attempt that nobody saw the end of. */
  const cutOff = new Set<string>();
  for (const event of log) {
    const delivery = readDelivery(event);
    if (delivery === undefined) continue;
    const key = deliveryKey(delivery.event, delivery.target);
    if (delivery.state === "sending" && last.get(key)?.delivery.state === "sending") cutOff.add(key);
    last.set(key, { delivery, atMs: event.time_ms });
  }
  const due: Attempt[] = [];
  const givenUp: Attempt[] = [];
  const settled = new Set<number>();
  let nextAtMs: number | undefined;
  for (const event of log) {
    if (event.kind === "delivery" || !rules.kinds.includes(event.kind)) continue;
    let open = false;
    for (const target of rules.targets) {
      const key = deliveryKey(event.seq, target);
      const before = last.get(key);
      const verdict = underWay.has(key) ? "wait" : judge(event, before, rules, nowMs);
      if (verdict === "done") continue;
      open = true;
      const attempt = (before?.delivery.attempt ?? 0) + 1;
      const repeat = cutOff.has(key) || before?.delivery.state === "sending";
      if (verdict === "now") due.push({ event, target, attempt, repeat });
      else if (verdict === "give-up") givenUp.push({ event, target, attempt: attempt - 1, repeat });
      else if (verdict !== "wait") nextAtMs = Math.min(nextAtMs ?? verdict, verdict);
    }
    if (!open) settled.add(event.seq);
  }
  return { due, givenUp, nextAtMs, settled };
}

function judge(
  event: Event,
  before: { delivery: Delivery; atMs: number } | undefined,
  rules: AlertRules,
  nowMs: number,
): "now" | "done" | "give-up" | number {
  if (before === undefined) return nowMs - event.time_ms > rules.maxAgeMs ? "done" : "now";
  const { state, attempt } = before.delivery;
  if (state === "delivered" || state === "given-up") return "done";
  if (attempt >= MOST_ATTEMPTS) return "give-up";
  if (state === "sending") return "now";
  const atMs = before.atMs + BACKOFF_MS[Math.min(attempt, BACKOFF_MS.length) - 1]!;
  return atMs <= nowMs ? "now" : atMs;
}

export function deliveryKey(event: number, target: AlertTarget): string {
  return `${event} ${target}`;
}

/** Undefined for every other event. */
export function readDelivery({ kind, data }: Event): Delivery | undefined {
  if (kind !== "delivery" || typeof data.event !== "number") return undefined;
  if (!(ALERT_TARGETS as readonly unknown[]).includes(data.target)) return undefined;
  return data as unknown as Delivery;
}

/** One line about an event, for people. */
export function describeAlert({ kind, mission, data }: Event): string {
  const who = mission ?? "lazarus";
  const what = typeof data.action === "string" ? data.action : kind;
  const why = typeof data.reason === "string" ? `: ${data.reason}` : "";
  const next = kind === "alert" && what === "ask" && mission !== null ? ` (lazarus revive ${mission})` : "";
  return `${who}: ${WORDS[what] ?? what}${why}${next}`;
}

const WORDS: Readonly<Record<string, string>> = {
  ask: "the agent died and asks to be revived",
  tombstone: "given up",
  trouble: "the pit cannot do its work",
  death: "the agent died",
  stall: "the agent stalled",
};
