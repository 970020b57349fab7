// Sends one alert to one target. What went wrong comes back as words without secrets: no address, no token, and what a
// command said on its standard error with its secrets taken out (INV-7).
import { readFileSync } from "node:fs";
import type { Machine } from "../platform/machine.ts";
import { redactSecrets } from "../platform/secrets.ts";
import { sendAlert } from "./flow-alert.ts";
import { type AlertTarget, type Attempt, describeAlert } from "./plan.ts";
import type { AlertSettings } from "./settings.ts";

const MOST_PROBLEM_CHARACTERS = 300;

export async function sendAttempt(
  machine: Machine,
  settings: AlertSettings,
  attempt: Attempt,
): Promise<string | undefined> {
  try {
    const document = await alertDocument(machine, attempt);
    const [problem] = await sendAlert(machine, ...addressed(settings, attempt.target, document));
    if (problem === undefined) return undefined;
    return (await redactSecrets(problem)).value.slice(0, MOST_PROBLEM_CHARACTERS);
  } catch (error) {
    // A file of a secret that cannot be read, say: the path may be told, its content never was read.
    return (error instanceof Error ? error.message : String(error)).slice(0, MOST_PROBLEM_CHARACTERS);
  }
}

/** What receivers get. `id` is the same for every attempt, so that they can tell repetitions. */
export async function alertDocument(machine: Machine, { event, attempt, repeat }: Attempt) {
  const host = machine.processes.hostName();
  const { value } = await redactSecrets({ text: describeAlert(event), data: event.data });
  return {
    schema: "lazarus.alert/1",
    id: `${host}-${event.seq}`,
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

type AlertDocument = Awaited<ReturnType<typeof alertDocument>>;

function addressed(
  { command, webhook, ntfy }: AlertSettings,
  target: AlertTarget,
  document: AlertDocument,
): [Parameters<typeof sendAlert>[1], Readonly<Record<string, unknown>>] {
  if (target === "command") return [{ command }, document];
  if (target === "webhook") {
    const url = webhook === undefined || "url" in webhook ? webhook?.url : readSecret(webhook.urlFile);
    return [{ webhook: url }, document];
  }
  const { server, topic, tokenFile } = ntfy!;
  const headers = tokenFile === undefined ? undefined : { authorization: `Bearer ${readSecret(tokenFile)}` };
  const message = {
    topic,
    title: `Lazarus: ${document.mission ?? document.host}`,
    message: document.repeat ? `${document.text} (perhaps told before)` : document.text,
    priority: document.kind === "alert" || document.kind === "tombstone" ? 4 : 3,
    tags: ["skull"],
  };
  return [{ webhook: server, webhookHeaders: headers }, message];
}

function readSecret(path: string): string {
  return readFileSync(path, "utf8").trim();
}
