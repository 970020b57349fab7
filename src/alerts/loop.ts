// Sends alerts for as long as the pit runs: follows the event log, plans, enters each attempt before and after it. Nothing
// it does can stop the pit: what fails is entered in the log and tried again, a bounded number of times.

import type { EventEmitter } from "node:events";
import { crashPoint } from "../platform/crash-point.ts";
import { LazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import type { Event, Registry } from "../registry/registry.ts";
import { sendAttempt } from "./deliver.ts";
import { type AlertPlan, type Attempt, type Delivery, deliveryKey, planAlerts } from "./plan.ts";
import type { AlertSettings } from "./settings.ts";

/** Events that other processes enter are found at this pace. */
const POLL_MS = 1000;
/** How far back a new pit looks for what was not told. */
const LOOK_BACK_EVENTS = 10_000;
const PAGE_EVENTS = 1000;
const AT_ONCE = 4;
/** At the end, attempts under way get so long to be entered as what they became. */
const GRACE_MS = 5000;
/** A log that cannot be written is left in peace for so long. */
const TROUBLE_MS = 30_000;

export interface AlertContext {
  readonly machine: Machine;
  /** Undefined when the registry cannot be opened. */
  registry(): Registry | undefined;
  /** Emits `event` for each event recorded in this process. */
  readonly events: EventEmitter<{ event: [Event] }>;
  log(line: string): void;
}

/** Works until the signal. Returns at once when no target is configured. */
export async function runAlerts(
  context: AlertContext,
  settings: AlertSettings,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = context.machine;
  if (settings.rules.targets.length === 0) return;
  const underWay = new Map<string, Promise<void>>();
  let log: Event[] = [];
  let seq = 0;
  let news = new AbortController();
  const wake = () => news.abort();
  context.events.on("event", wake);
  signal.addEventListener("abort", wake);

  const matters = ({ kind }: Event) => kind === "delivery" || settings.rules.kinds.includes(kind);
  const follow = () => {
    const registry = context.registry();
    if (registry === undefined) return;
    const first = seq === 0;
    for (;;) {
      const page = registry.events(
        first && seq === 0 ? { last: LOOK_BACK_EVENTS } : { afterSeq: seq, first: PAGE_EVENTS },
      );
      seq = page.at(-1)?.seq ?? seq;
      log.push(...page.filter(matters));
      if (page.length < PAGE_EVENTS) return;
    }
  };
  const launch = (attempt: Attempt) => {
    const key = deliveryKey(attempt.event.seq, attempt.target);
    const work = deliver(context, settings, attempt)
      .catch((error: unknown) => {
        context.log(`alerts: ${error instanceof Error ? error.message : String(error)}`);
        return clock.sleep(TROUBLE_MS, signal);
      })
      .finally(() => {
        underWay.delete(key);
        wake();
      });
    underWay.set(key, work);
  };

  while (!signal.aborted) {
    news = new AbortController();
    try {
      follow();
      const plan = planAlerts(log, settings.rules, new Set(underWay.keys()), clock.nowMs());
      for (const attempt of plan.givenUp) enter(context, attempt, "given-up", "too many attempts");
      for (const attempt of plan.due.slice(0, Math.max(0, AT_ONCE - underWay.size))) launch(attempt);
      log = forget(log, plan);
    } catch (error) {
      context.log(`alerts: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (!signal.aborted) await clock.sleep(POLL_MS, news.signal);
  }
  context.events.off("event", wake);
  await Promise.race([Promise.all(underWay.values()), clock.sleep(GRACE_MS)]);
}

async function deliver(context: AlertContext, settings: AlertSettings, attempt: Attempt): Promise<void> {
  enter(context, attempt, "sending", null);
  crashPoint("pit.alert.sending");
  const problem = await sendAttempt(context.machine, settings, attempt);
  crashPoint("pit.alert.sent");
  enter(context, attempt, problem === undefined ? "delivered" : "failed", problem ?? null);
}

function enter(
  context: AlertContext,
  attempt: Attempt,
  state: Delivery["state"],
  problem: string | null,
): void {
  const data: Delivery = {
    event: attempt.event.seq,
    target: attempt.target,
    attempt: attempt.attempt,
    state,
    problem,
  };
  // What cannot be entered must not be sent, or it would be sent for ever.
  const registry = context.registry();
  if (registry === undefined) throw new LazarusError("REGISTRY_DAMAGED", "the registry cannot be used");
  const entered = registry.append({ kind: "delivery", mission: attempt.event.mission, data: { ...data } });
  context.events.emit("event", entered);
}

/** What is settled need not be looked at again, nor what was said of events that are not looked at. */
function forget(log: readonly Event[], { settled }: AlertPlan): Event[] {
  const open = log.filter(({ seq, kind }) => kind !== "delivery" && !settled.has(seq));
  const numbers = new Set(open.map(({ seq }) => seq));
  return log.filter(({ seq, kind, data }) => numbers.has(kind === "delivery" ? Number(data.event) : seq));
}
