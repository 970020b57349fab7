// Sends alerts while the pit runs: follows the event log, plans, and records each attempt before it starts and after it
// ends. Nothing here stops the pit: a failure is logged and retried a bounded number of times.
import type { EventEmitter } from "node:events";
import { crashPoint } from "../platform/crash-point.ts";
import { LazarusError, messageOf } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import type { Event, EventChannels, NewEvent, Registry } from "../registry/registry.ts";
import { deliver } from "./deliver.ts";
import { addressAlert, alertDocument } from "./message.ts";
import { type AlertPlan, type Attempt, type Delivery, deliveryKey, planAlerts } from "./plan.ts";
import type { AlertSettings } from "./settings.ts";

/** The part of the pit's context that alerts need. */
export interface AlertContext {
  readonly machine: Machine;
  /** Emits events of this process, including those that the registry could not take. */
  readonly events: EventEmitter<EventChannels>;
  registry(): Registry | undefined;
  log(line: string): void;
}

/** How soon events recorded by other processes are found. */
const POLL_MS = 1000;
/** How far back a new pit looks for events that were not reported. */
const LOOK_BACK_EVENTS = 10_000;
const PAGE_EVENTS = 1000;
const MAX_CONCURRENT = 4;
/** On shutdown, how long to wait for running attempts so that their outcome is recorded. */
const SHUTDOWN_GRACE_MS = 5000;
/** Pause after the registry could not be written. */
const RECORD_FAILURE_PAUSE_MS = 30_000;

/** Runs until the signal. Returns immediately when no target is configured. */
export async function runAlerts(
  context: AlertContext,
  settings: AlertSettings,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = context.machine;
  if (settings.rules.targets.length === 0) return;
  const running = new Map<string, Promise<void>>();
  const reader = createEventReader(context, settings.rules.kinds);
  let log: Event[] = [];
  let pause = new AbortController();
  const wake = () => pause.abort();
  context.events.on("event", wake);
  signal.addEventListener("abort", wake);

  /** Sent without a record, because the disk is full: once each, as long as this pit runs. */
  const unrecorded = new Set<string>();
  const sendUnrecorded = (event: NewEvent) => {
    if (!settings.rules.kinds.includes(event.kind)) return;
    const unsaved = { ...event, seq: 0, time_ms: clock.nowMs(), data: event.data ?? {} };
    for (const target of settings.rules.targets)
      void sendOnce(context, settings, { event: unsaved, target, attempt: 1, repeat: false });
  };
  context.events.on("unrecorded", sendUnrecorded);

  const start = (attempt: Attempt) => {
    const key = deliveryKey(attempt.event.seq, attempt.target);
    const work = attemptDelivery(context, settings, attempt)
      .catch(async (error: unknown) => {
        context.log(`alerts: ${messageOf(error)}`);
        if (!unrecorded.has(key)) await sendOnce(context, settings, attempt);
        unrecorded.add(key);
        await clock.sleep(RECORD_FAILURE_PAUSE_MS, signal);
      })
      .finally(() => {
        running.delete(key);
        wake();
      });
    running.set(key, work);
  };

  while (!signal.aborted) {
    pause = new AbortController();
    try {
      log.push(...reader.readNew());
      const plan = planAlerts(log, settings.rules, new Set(running.keys()), clock.nowMs());
      for (const attempt of plan.givenUp) record(context, attempt, "given-up", "too many attempts");
      for (const attempt of plan.due.slice(0, Math.max(0, MAX_CONCURRENT - running.size))) start(attempt);
      log = dropClosed(log, plan);
    } catch (error) {
      context.log(`alerts: ${messageOf(error)}`);
    }
    if (!signal.aborted) await clock.sleep(POLL_MS, pause.signal);
  }
  context.events.off("event", wake);
  context.events.off("unrecorded", sendUnrecorded);
  await Promise.race([Promise.all(running.values()), clock.sleep(SHUTDOWN_GRACE_MS)]);
}

/** Reads the events since the last call that matter to the plan. */
function createEventReader(context: AlertContext, kinds: readonly string[]): { readNew(): Event[] } {
  let lastSeq = 0;
  return {
    readNew() {
      const registry = context.registry();
      const found: Event[] = [];
      if (registry === undefined) return found;
      for (let first = lastSeq === 0; ; first = false) {
        const page = registry.events(
          first ? { last: LOOK_BACK_EVENTS } : { afterSeq: lastSeq, first: PAGE_EVENTS },
        );
        lastSeq = page.at(-1)?.seq ?? lastSeq;
        found.push(...page.filter(({ kind }) => kind === "delivery" || kinds.includes(kind)));
        if (page.length < PAGE_EVENTS) return found;
      }
    },
  };
}

async function attemptDelivery(
  context: AlertContext,
  settings: AlertSettings,
  attempt: Attempt,
): Promise<void> {
  record(context, attempt, "sending", null);
  crashPoint("alerts.attempt.sending");
  const problem = await send(context.machine, settings, attempt);
  crashPoint("alerts.attempt.sent");
  record(context, attempt, problem === undefined ? "delivered" : "failed", problem ?? null);
}

/** Alerting must not need disk space: sends an alert that cannot be recorded, and does not retry it. */
async function sendOnce(context: AlertContext, settings: AlertSettings, attempt: Attempt): Promise<void> {
  const problem = await send(context.machine, settings, attempt);
  if (problem !== undefined) context.log(`alerts: not sent to ${attempt.target}: ${problem}`);
}

async function send(
  machine: Machine,
  settings: AlertSettings,
  attempt: Attempt,
): Promise<string | undefined> {
  try {
    const document = await alertDocument(machine, attempt);
    const { destination, body } = addressAlert(settings, attempt.target, document);
    return await deliver(machine, destination, body);
  } catch (error) {
    // For example, a secret file cannot be read: the message names the path, never the content.
    return messageOf(error).slice(0, 300);
  }
}

function record(
  context: AlertContext,
  { event, target, attempt }: Attempt,
  state: Delivery["state"],
  problem: string | null,
): void {
  const data: Delivery = { event: event.seq, target, attempt, state, problem };
  // Throws when it cannot be recorded: an attempt that is not recorded would be repeated forever.
  const registry = context.registry();
  if (registry === undefined) throw new LazarusError("REGISTRY_DAMAGED", "the registry cannot be used");
  const recorded = registry.append({ kind: "delivery", mission: event.mission, data: { ...data } });
  context.events.emit("event", recorded);
}

/** Forgets closed events and the deliveries that belong to them. */
function dropClosed(log: readonly Event[], { closed }: AlertPlan): Event[] {
  const open = log.filter(({ seq, kind }) => kind !== "delivery" && !closed.has(seq));
  const openSeqs = new Set(open.map(({ seq }) => seq));
  return log.filter(({ seq, kind, data }) => openSeqs.has(kind === "delivery" ? Number(data.event) : seq));
}
