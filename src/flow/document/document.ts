// The flow file format: its fields, validation and hash. The format is shared with the Python tool and does not change
// (docs/flows.md); unknown fields are preserved. Pure: no I/O, no clock.
import { LazarusError } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { isFileStem } from "./id.ts";
import { formatExact, hasNonAscii, NestingError, pythonJson } from "./python-json.ts";

export const SCHEMA_VERSION = "1.0";
/** A flow file is about a kilobyte; more than a megabyte is not a list of steps. */
export const FLOW_LIMIT_BYTES = 1024 * 1024;
/** All statuses of a flow. */
export const FLOW_STATUSES = ["in_progress", "blocked", "done", "failed"] as const;
/** The status of a flow. */
export type FlowStatus = (typeof FLOW_STATUSES)[number];

/** A flow file. */
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
  /** Numbers that JavaScript cannot represent exactly are raw JSON. */
  readonly [extra: string]: unknown;
}

export type DocumentVerdict =
  | { readonly ok: true; readonly document: FlowDocument }
  | { readonly ok: false; readonly why: "schema" | "hash" | "newer"; readonly reason: string };

const STATUSES: ReadonlySet<unknown> = new Set(FLOW_STATUSES);
const TEXT_FIELDS = ["workflowId", "agentId", "currentStep", "idempotencyKey", "updatedAt"] as const;
const STEP_FIELDS = ["completedSteps", "remainingSteps"] as const;
const OPTIONAL_TEXT_FIELDS = ["handoffTo", "notes", "expiresAt"] as const;

/** Checks the schema and hash of a parsed file; `stem` is its name without `.json`. */
export function checkDocument(value: unknown, stem: string): DocumentVerdict {
  if (!isJsonObject(value)) return schema("is JSON, but not an object");
  const reason = findSchemaFault(value, stem);
  if (reason !== undefined) {
    const newer = typeof value.schemaVersion === "string" && isNewer(value.schemaVersion);
    return newer ? { ok: false, why: "newer", reason: newerReason(value.schemaVersion) } : schema(reason);
  }
  const document = value as unknown as FlowDocument;
  const { checkpointHash } = document;
  try {
    // The hash is optional.
    if (checkpointHash !== undefined && !hashMatches(document, checkpointHash)) {
      return { ok: false, why: "hash", reason: "has a checkpointHash that does not match its content" };
    }
  } catch (error) {
    if (error instanceof NestingError) return schema("is nested too deeply");
    throw error;
  }
  return { ok: true, document };
}

/** Sets `checkpointHash` to the value that the Python tool would compute. */
export function withCheckpointHash(document: FlowDocument): FlowDocument {
  return { ...document, checkpointHash: sha256Hex(pythonJson(document, "checkpointHash", true)) };
}

/** The text of the file. Throws if it would exceed the size limit of readers. */
export function formatFlow(document: FlowDocument): string {
  const text = formatExact(document);
  if (text.length <= FLOW_LIMIT_BYTES) return text;
  throw new LazarusError(
    "USAGE",
    `${document.workflowId} would have ${text.length} bytes, more than the limit of ${FLOW_LIMIT_BYTES}; nothing was written`,
    { hint: "use fewer or shorter steps; keep long text in a separate file and put its path into the notes" },
  );
}

/** Whether a flow has steps left. */
export function isUnfinished(document: FlowDocument): boolean {
  return document.status === "in_progress" || document.status === "blocked";
}

/** Whether a flow has passed its expiry time. */
export function isExpired(document: FlowDocument, nowMs: number): boolean {
  const expiry = typeof document.expiresAt === "string" ? parseIsoMs(document.expiresAt) : undefined;
  return expiry !== undefined && expiry <= nowMs;
}

function hashMatches(document: FlowDocument, expected: string): boolean {
  if (sha256Hex(pythonJson(document, "checkpointHash", true)) === expected) return true;
  // Writers that set ensure_ascii=False hash the unescaped characters.
  const plain = pythonJson(document, "checkpointHash", false);
  return hasNonAscii(plain) && sha256Hex(plain) === expected;
}

function findSchemaFault(value: Record<string, unknown>, stem: string): string | undefined {
  if (value.schemaVersion !== SCHEMA_VERSION) {
    return value.schemaVersion === undefined
      ? "has no schemaVersion"
      : 'has a schemaVersion that is not "1.0"';
  }
  for (const field of TEXT_FIELDS) {
    if (typeof value[field] !== "string") return field in value ? notText(field) : `has no ${field}`;
  }
  if (!STATUSES.has(value.status)) {
    return `has a status other than ${FLOW_STATUSES.join(", ")}`;
  }
  for (const field of STEP_FIELDS) {
    const steps = value[field];
    if (!Array.isArray(steps) || !steps.every((step) => typeof step === "string")) {
      return `has a field ${field} that is not a list of strings`;
    }
  }
  for (const field of OPTIONAL_TEXT_FIELDS) {
    const text = value[field];
    if (text !== undefined && text !== null && typeof text !== "string") return notText(field);
  }
  if (value.checkpointHash !== undefined && typeof value.checkpointHash !== "string") {
    return notText("checkpointHash");
  }
  if (parseIsoMs(value.updatedAt as string) === undefined)
    return "has a field updatedAt that is not an ISO 8601 time";
  if (typeof value.expiresAt === "string" && parseIsoMs(value.expiresAt) === undefined) {
    return "has a field expiresAt that is not an ISO 8601 time";
  }
  // A copy under another name would mean doing the same work twice.
  if (value.workflowId !== stem) return `is named ${stem}.json but has a different workflowId`;
  if (!isFileStem(stem)) return "does not have a valid workflow name";
  return undefined;
}

function notText(field: string): string {
  return `has a field ${field} that is not a string`;
}

function schema(reason: string): DocumentVerdict {
  return { ok: false, why: "schema", reason };
}

function isNewer(version: string): boolean {
  const match = /^(\d{1,6})\.(\d{1,6})$/.exec(version);
  return match !== null && (Number(match[1]) > 1 || (match[1] === "1" && Number(match[2]) > 0));
}

function newerReason(version: unknown): string {
  return `has schemaVersion ${String(version)}; this version of Lazarus supports ${SCHEMA_VERSION} and does not change the file`;
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?)?$/;
const FULL_ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since the epoch. A time without a zone is UTC: that is what the tools that write these files use. */
export function parseIsoMs(text: string): number | undefined {
  const ms = Date.parse(FULL_ISO.test(text) ? text : toFullIso(text));
  return Number.isNaN(ms) ? undefined : ms;
}

/** Completes the shorter forms of Python's isoformat and fromisoformat, so that Date.parse reads them the same way. */
function toFullIso(text: string): string {
  const match = ISO.exec(text);
  if (match === null) return "";
  const [, date, minutes = "00:00", seconds = ":00", fraction = "0", zone = "Z"] = match;
  return `${date}T${minutes}${seconds}.${fraction}${/^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone}`;
}

const DAY_MS = 86_400_000;
/** Other readers of these files do not accept years of five digits. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** The expiry time `days` from now. */
export function expiryAfter(days: number, nowMs: number): string {
  const expiryMs = nowMs + days * DAY_MS;
  if (days >= 0 && expiryMs <= LAST_MS) return formatIso(expiryMs);
  throw new LazarusError("USAGE", `${days} days is not a valid time to live; nothing was written`, {
    hint: "--ttl-days 36500 is a hundred years",
  });
}

/** Uses "+00:00" because Python before 3.11 does not read "Z". */
export function formatIso(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "+00:00");
}
