// The `alerts` section of the configuration. Secrets can be kept in separate files, so that the configuration can be shown
// and shared; this file only checks and passes on their paths.
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { EVENT_KINDS } from "../registry/registry.ts";
import type { AlertRules, AlertTarget } from "./plan.ts";

export interface AlertSettings {
  readonly rules: AlertRules;
  /** A line for /bin/sh that gets the alert as JSON on its standard input. */
  readonly command: string | undefined;
  /** The address is often a secret itself, so it can be given as the path of a file. */
  readonly webhook: { readonly url: string } | { readonly urlFile: string } | undefined;
  readonly ntfy:
    | { readonly server: string; readonly topic: string; readonly tokenFile: string | undefined }
    | undefined;
}

const DEFAULT_MAX_AGE_SECONDS = 3600;
/** Raised by the pit itself: a mission waits for permission, was given up, or the pit cannot do its work. */
const DEFAULT_KINDS = ["alert"];

export function alertSettings(document: JsonObject, file: string | undefined): AlertSettings {
  const where = `${file ?? "config"}: alerts`;
  const section = document.alerts ?? {};
  if (!isJsonObject(section)) throw invalid(where, "an object");
  const command = text(section.command, `${where}.command`);
  const url = address(section.webhook, `${where}.webhook`);
  const urlFile = text(section.webhook_file, `${where}.webhook_file`);
  const webhook = url !== undefined ? { url } : urlFile !== undefined ? { urlFile } : undefined;
  const ntfy = readNtfy(section, where);
  const kinds = section.on ?? DEFAULT_KINDS;
  const isKind = (kind: unknown) => (EVENT_KINDS as readonly unknown[]).includes(kind) && kind !== "delivery";
  if (!Array.isArray(kinds) || !kinds.every(isKind)) throw invalid(`${where}.on`, "a list of event kinds");
  const maxAge = section.max_age_seconds ?? DEFAULT_MAX_AGE_SECONDS;
  if (typeof maxAge !== "number" || !(maxAge > 0))
    throw invalid(`${where}.max_age_seconds`, "a number above 0");
  const targets: AlertTarget[] = [];
  if (command !== undefined) targets.push("command");
  if (webhook !== undefined) targets.push("webhook");
  if (ntfy !== undefined) targets.push("ntfy");
  return { rules: { kinds, targets, maxAgeMs: maxAge * 1000 }, command, webhook, ntfy };
}

/** In `https://ntfy.sh/my-topic` the last path segment is the topic. */
function readNtfy(section: JsonObject, where: string): AlertSettings["ntfy"] {
  const full = address(section.ntfy, `${where}.ntfy`);
  if (full === undefined) return undefined;
  const url = new URL(full);
  const parts = url.pathname.split("/").filter((part) => part !== "");
  const topic = parts.pop();
  if (topic === undefined) throw invalid(`${where}.ntfy`, "a URL that ends with a topic");
  return {
    server: new URL(`/${parts.join("/")}`, url.origin).href,
    topic: decodeURIComponent(topic),
    tokenFile: text(section.ntfy_token_file, `${where}.ntfy_token_file`),
  };
}

function text(value: unknown, key: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw invalid(key, "text");
}

/** The error message never contains the address. */
function address(value: unknown, key: string): string | undefined {
  const given = text(value, key);
  if (given === undefined) return undefined;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url?.protocol === "https:" || url?.protocol === "http:") return given;
  throw invalid(key, "an http or https URL");
}

function invalid(key: string, expected: string): LazarusError {
  return new LazarusError("CONFIG_INVALID", `${key} is not ${expected}`, {
    hint: "edit it, then: lazarus config",
    details: { key, expected },
  });
}
