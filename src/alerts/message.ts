// What an alert says and where it goes, for each target of the configuration. The content is redacted before it leaves
// the machine (INV-7); secrets such as a token are read from their files when the alert is sent and never kept.
import { readFileSync } from "node:fs";
import type { Machine } from "../platform/machine.ts";
import { redactSecrets } from "../platform/secrets/redact.ts";
import type { Event } from "../registry/registry.ts";
import type { Destination } from "./deliver.ts";
import type { AlertTarget, Attempt } from "./plan.ts";
import type { AlertSettings } from "./settings.ts";

/** The document that receivers get. `id` is the same for every attempt, so that they can drop duplicates. */
export async function alertDocument(machine: Machine, { event, attempt, repeat }: Attempt) {
  const host = machine.processes.hostName();
  const { value } = await redactSecrets({ text: describeAlert(event), data: event.data });
  return {
    schema: "lazarus.alert/1",
    // An event that could not be recorded has no number.
    id: `${host}-${event.seq === 0 ? `at-${event.time_ms}` : event.seq}`,
    host,
    mission: event.mission,
    kind: event.kind,
    time_ms: event.time_ms,
    text: value.text,
    data: value.data,
    attempt,
    repeat,
  };
}

export type AlertDocument = Awaited<ReturnType<typeof alertDocument>>;

/** The destination of a target, and the document in the form that it expects. Throws if a secret's file is unreadable. */
export function addressAlert(
  { command, webhook, ntfy }: AlertSettings,
  target: AlertTarget,
  document: AlertDocument,
): { destination: Destination; body: Readonly<Record<string, unknown>> } {
  if (target === "command") return { destination: { command: command! }, body: document };
  if (target === "webhook") {
    const url = "url" in webhook! ? webhook.url : readSecret(webhook!.urlFile);
    return { destination: { webhook: url }, body: document };
  }
  const { server, topic, tokenFile } = ntfy!;
  const headers = tokenFile === undefined ? undefined : { authorization: `Bearer ${readSecret(tokenFile)}` };
  const body = {
    topic,
    title: `Lazarus: ${document.mission ?? document.host}`,
    message: document.repeat ? `${document.text} (possible duplicate)` : document.text,
    priority: document.kind === "alert" || document.kind === "tombstone" ? 4 : 3,
    tags: ["skull"],
  };
  return { destination: { webhook: server, headers }, body };
}

function readSecret(path: string): string {
  return readFileSync(path, "utf8").trim();
}

/** One line about an event. */
export function describeAlert({ kind, mission, data }: Event): string {
  const action = typeof data.action === "string" ? data.action : kind;
  const reason = typeof data.reason === "string" ? `: ${data.reason}` : "";
  const next = kind === "alert" && action === "ask" && mission !== null ? ` (lazarus revive ${mission})` : "";
  return `${mission ?? "lazarus"}: ${DESCRIPTIONS[action] ?? action}${reason}${next}`;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  ask: "the agent died and needs your approval to be revived",
  tombstone: "given up",
  trouble: "the pit cannot do its work",
  death: "the agent died",
  stall: "the agent stalled",
  silent: "the cell has gone silent",
};
