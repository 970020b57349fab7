// Names of workflows and agents, checked before a path is built from one. New ids are slugs, like mission ids; files that
// the Python tool created under other names can still be opened if the name is a plain file name.
import { LazarusError } from "../../platform/errors.ts";

const SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Leaves room for prefixes and suffixes (mutex, temporary, quarantine) within the 255 bytes of a file name. */
const MAX_STEM_BYTES = 200;
/** No slash, no control character, no leading dot. */
const STEM = /^[^./\u0000-\u001f\u007f-\u009f][^/\u0000-\u001f\u007f-\u009f]*$/;

/** The Python tool keeps its JSON schema under this name among the flow files, and ignores it there. */
export const SCHEMA_STEM = "CHECKPOINT_SCHEMA";

export function isFlowId(text: string): boolean {
  return SLUG.test(text) && !text.includes("..") && text !== SCHEMA_STEM;
}

/** A name that an existing file may have. */
export function isFileStem(text: string): boolean {
  return STEM.test(text) && !text.includes("..") && !isTooLong(text);
}

/** Too long for the name of its mutex, so the flow cannot be changed safely. */
export function isTooLong(stem: string): boolean {
  return Buffer.byteLength(stem) > MAX_STEM_BYTES;
}

/** Checks the id of a new workflow or agent. */
export function parseFlowId(text: string, kind: "workflow" | "agent"): string {
  if (isFlowId(text)) return text;
  // JSON quoting keeps control characters of a malicious id from the terminal.
  throw new LazarusError("FLOW_ID_INVALID", `${JSON.stringify(shorten(text))} is not a valid ${kind} id`, {
    hint: `use 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit, without '..': --${kind} nightly-report`,
  });
}

/** Checks the id of an existing workflow. */
export function parseStem(text: string): string {
  return isFileStem(text) ? text : parseFlowId(text, "workflow");
}

function shorten(text: string): string {
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
