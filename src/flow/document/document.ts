// What a flow file is: its fields, when it is valid, and its hash. The shape is shared with the Python tool and fixed
// (docs/flows.md); unknown fields belong to their writers and survive. Pure: no I/O, no clock.
import { LazarusError } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { isFileStem } from "./id.ts";
import { canonicalJson, formatExact, hasNonAscii, TooDeep } from "./python-json.ts";

export const SCHEMA_VERSION = "1.0";
/** A flow file is about a kilobyte; one of more than a megabyte is not a list of steps. */
export const FLOW_LIMIT_BYTES = 1024 * 1024;
export const FLOW_STATUSES = ["in_progress", "blocked", "done", "failed"] as const;
export type FlowStatus = (typeof FLOW_STATUSES)[number];

export interface FlowDocument {
  readonly schemaVersion: string;
  readonly workflowId: string;
  readonly agentId: string;
  readonly status: FlowStatus;
  readonly currentStep: string;
  readonly completedSteps: readonly string[];
  readonly remainingSteps: readonly string[];
  readonly handoffTo?: string | null;
  readonly notes?: string | null;
  readonly idempotencyKey: string;
  /** ISO 8601. */
  readonly updatedAt: string;
  readonly expiresAt?: string | null;
  readonly checkpointHash?: string;
  /** Numbers that JavaScript cannot hold exactly are raw JSON here. */
  readonly [extra: string]: unknown;
}

export type Verdict =
  | { readonly ok: true; readonly document: FlowDocument }
  | { readonly ok: false; readonly why: "schema" | "hash" | "newer"; readonly reason: string };

const STATUSES: ReadonlySet<unknown> = new Set(FLOW_STATUSES);
const TEXT_FIELDS = ["workflowId", "agentId", "currentStep", "idempotencyKey", "updatedAt"] as const;
const STEP_FIELDS = ["completedSteps", "remainingSteps"] as const;
const OPTIONAL_TEXT_FIELDS = ["handoffTo", "notes", "expiresAt"] as const;

/** Schema and hash of a parsed file; `stem` is its name without `.json`. */
export function judgeDocument(value: unknown, stem: string): Verdict {
  if (!isJsonObject(value)) return schema("is JSON, but not an object");
  const reason = schemaFault(value, stem);
  if (reason !== undefined) {
    const newer = typeof value.schemaVersion === "string" && isNewer(value.schemaVersion);
    return newer ? { ok: false, why: "newer", reason: newerReason(value.schemaVersion) } : schema(reason);
  }
  const document = value as unknown as FlowDocument;
  const { checkpointHash } = document;
  try {
    // Without a hash there is nothing to compare: the field is optional.
    if (checkpointHash !== undefined && !hashMatches(document, checkpointHash)) {
      return { ok: false, why: "hash", reason: "has a checkpointHash that does not match its content" };
    }
  } catch (error) {
    if (error instanceof TooDeep) return schema("is nested too deeply");
    throw error;
  }
  return { ok: true, document };
}

/** The document with its hash as the Python tool would compute it. */
export function seal(document: FlowDocument): FlowDocument {
  return { ...document, checkpointHash: sha256Hex(canonicalJson(document, "checkpointHash", true)) };
}

/** The file's text. Refused when no reader would take it back. */
export function formatFlow(document: FlowDocument): string {
  const text = formatExact(document);
  if (text.length <= FLOW_LIMIT_BYTES) return text;
  throw new LazarusError(
    "USAGE",
    `${document.workflowId} would have ${text.length} bytes, more than the ${FLOW_LIMIT_BYTES} that a flow may have; nothing was written`,
    { hint: "fewer or shorter steps; keep long text in a file of its own, and put its path into the notes" },
  );
}

export function isUnfinished(document: FlowDocument): boolean {
  return document.status === "in_progress" || document.status === "blocked";
}

export function isExpired(document: FlowDocument, nowMs: number): boolean {
  const expiry = typeof document.expiresAt === "string" ? parseIsoMs(document.expiresAt) : undefined;
  return expiry !== undefined && expiry <= nowMs;
}

function hashMatches(document: FlowDocument, expected: string): boolean {
  if (sha256Hex(canonicalJson(document, "checkpointHash", true)) === expected) return true;
  // Writers that set ensure_ascii=False hash the characters themselves.
  const plain = canonicalJson(document, "checkpointHash", false);
  return hasNonAscii(plain) && sha256Hex(plain) === expected;
}

function schemaFault(value: Record<string, unknown>, stem: string): string | undefined {
  if (value.schemaVersion !== SCHEMA_VERSION) {
    return value.schemaVersion === undefined
      ? "has no schemaVersion"
      : 'has a schemaVersion that is not "1.0"';
  }
  for (const field of TEXT_FIELDS) {
    if (typeof value[field] !== "string") return field in value ? notText(field) : `has no ${field}`;
  }
  if (!STATUSES.has(value.status)) {
    return `has a status that is none of ${FLOW_STATUSES.join(", ")}`;
  }
  for (const field of STEP_FIELDS) {
    const steps = value[field];
    if (!Array.isArray(steps) || !steps.every((step) => typeof step === "string")) {
      return `has no list of texts in ${field}`;
    }
  }
  for (const field of OPTIONAL_TEXT_FIELDS) {
    const text = value[field];
    if (text !== undefined && text !== null && typeof text !== "string") return notText(field);
  }
  if (value.checkpointHash !== undefined && typeof value.checkpointHash !== "string") {
    return notText("checkpointHash");
  }
  if (parseIsoMs(value.updatedAt as string) === undefined) return "has no ISO time in updatedAt";
  if (typeof value.expiresAt === "string" && parseIsoMs(value.expiresAt) === undefined) {
    return "has no ISO time in expiresAt";
  }
  // A copy under another name would be the same work twice.
  if (value.workflowId !== stem) return `is named ${stem}.json but holds another workflowId`;
  if (!isFileStem(stem)) return "has a name that no workflow may have";
  return undefined;
}

function notText(field: string): string {
  return `has no text in ${field}`;
}

function schema(reason: string): Verdict {
  return { ok: false, why: "schema", reason };
}

function isNewer(version: string): boolean {
  const match = /^(\d{1,6})\.(\d{1,6})$/.exec(version);
  return match !== null && (Number(match[1]) > 1 || (match[1] === "1" && Number(match[2]) > 0));
}

function newerReason(version: unknown): string {
  return `has schemaVersion ${String(version)}; this Lazarus knows ${SCHEMA_VERSION} and leaves it alone`;
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?)?$/;
const FULL_ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since the epoch. A time without a zone is UTC, which is what the tools that write these files mean. */
export function parseIsoMs(text: string): number | undefined {
  const ms = Date.parse(FULL_ISO.test(text) ? text : fullForm(text));
  return Number.isNaN(ms) ? undefined : ms;
}

/** The looser forms that Python's isoformat and fromisoformat know, as the one that JavaScript reads alike. */
function fullForm(text: string): string {
  const match = ISO.exec(text);
  if (match === null) return "";
  const [, date, minutes = "00:00", seconds = ":00", fraction = "0", zone = "Z"] = match;
  return `${date}T${minutes}${seconds}.${fraction}${/^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone}`;
}

const DAY_MS = 86_400_000;
/** Five digits are no year to the readers of these files. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** When a flow expires that lives so many days from now. */
export function expiryAfter(days: number, nowMs: number): string {
  const expiryMs = nowMs + days * DAY_MS;
  if (days >= 0 && expiryMs <= LAST_MS) return formatIso(expiryMs);
  throw new LazarusError("USAGE", `nothing can expire in ${days} days; nothing was written`, {
    hint: "--ttl-days 36500 is a hundred years",
  });
}

/** "+00:00" and not "Z": Python before 3.11 reads only the former. */
export function formatIso(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "+00:00");
}
