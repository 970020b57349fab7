// The section `alerts` of the config. Secrets are kept in separate files, so that the config can be shown and shared;
// they are read when an alert is sent and not kept in memory.
import { invalidSetting, readSection, setting } from "../cell/settings.ts";
import type { JsonObject } from "../platform/json-file.ts";
import { EVENT_KINDS } from "../registry/registry.ts";
import type { AlertRules, AlertTarget } from "./plan.ts";

const DEFAULT_MAX_AGE_SECONDS = 3600;
/** Raised by the pit itself: a mission waits for approval or was given up, or the pit cannot do its work. */
const DEFAULT_KINDS = ["alert"] as const;
const ADDRESS = "an http or https address";

export const ALERT_SETTINGS = {
  command: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "text",
    description: "command line for /bin/sh; receives the alert as JSON on standard input",
  }),
  webhook: setting({
    type: (z) => z.string().refine(isWebAddress),
    default: undefined,
    allowed: ADDRESS,
    description: "URL that receives each alert as a JSON POST",
    secret: true,
  }),
  webhook_file: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "a path",
    description: "file that holds the webhook URL, if the URL itself is a secret",
  }),
  ntfy: setting({
    type: (z) => z.string().refine(isWebAddress),
    default: undefined,
    allowed: ADDRESS,
    description: "ntfy topic, for example https://ntfy.sh/my-topic",
    secret: true,
  }),
  ntfy_token_file: setting({
    type: (z) => z.string().min(1),
    default: undefined,
    allowed: "a path",
    description: "file that holds the access token for ntfy",
  }),
  on: setting({
    type: (z) => z.array(z.enum(EVENT_KINDS).exclude(["delivery"])).readonly(),
    default: DEFAULT_KINDS,
    allowed: "a list of kinds of events",
    description: "event kinds that are sent; `lazarus events` shows them",
  }),
  max_age_seconds: setting({
    type: (z) => z.number().positive(),
    default: DEFAULT_MAX_AGE_SECONDS,
    allowed: "a number above 0",
    description: "do not send events that were already older than this when first seen",
  }),
};

export interface AlertSettings {
  readonly rules: AlertRules;
  /** A line for /bin/sh; it receives the alert as JSON on standard input. */
  readonly command: string | undefined;
  /** The address is often a secret: given directly, or as the path of a file that holds it. */
  readonly webhook: { readonly url: string } | { readonly urlFile: string } | undefined;
  readonly ntfy:
    | { readonly server: string; readonly topic: string; readonly tokenFile: string | undefined }
    | undefined;
}

export function alertSettings(document: JsonObject, file: string | undefined): AlertSettings {
  const where = `${file ?? "config"}: alerts`;
  const values = readSection(ALERT_SETTINGS, document.alerts, where, { nullIsUnset: true });
  const { command, webhook: url, webhook_file: urlFile } = values;
  const webhook = url !== undefined ? { url } : urlFile !== undefined ? { urlFile } : undefined;
  const ntfy = values.ntfy === undefined ? undefined : readNtfy(values.ntfy, values.ntfy_token_file, where);
  const targets: AlertTarget[] = [];
  if (command !== undefined) targets.push("command");
  if (webhook !== undefined) targets.push("webhook");
  if (ntfy !== undefined) targets.push("ntfy");
  const maxAgeMs = (values.max_age_seconds ?? DEFAULT_MAX_AGE_SECONDS) * 1000;
  return { rules: { kinds: values.on ?? DEFAULT_KINDS, targets, maxAgeMs }, command, webhook, ntfy };
}

/** `https://ntfy.sh/my-topic`: the last part is the topic. */
function readNtfy(address: string, tokenFile: string | undefined, where: string): AlertSettings["ntfy"] {
  const url = new URL(address);
  const parts = url.pathname.split("/").filter((part) => part !== "");
  const topic = parts.pop();
  if (topic === undefined) throw invalidSetting(`${where}.ntfy`, "an address that ends with a topic");
  return {
    server: new URL(`/${parts.join("/")}`, url.origin).href,
    topic: decodeURIComponent(topic),
    tokenFile,
  };
}

function isWebAddress(text: string): boolean {
  const protocol = URL.canParse(text) ? new URL(text).protocol : undefined;
  return protocol === "https:" || protocol === "http:";
}
