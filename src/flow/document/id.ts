// Names of workflows and agents: checked before a path is built from one. New ids are safe slugs, like mission ids;
// files that the Python tool made under freer names still open, as long as the name is a plain file name.
import { LazarusError } from "../../platform/errors.ts";

const SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** With what is put around it (guards, temporaries, quarantine) it must still be a file name: 255 bytes at most. */
const MOST_STEM_BYTES = 200;
/** No slash, no control character, not hidden. The name came from the disk, so it cannot lead elsewhere. */
const STEM = /^[^./\u0000-\u001f\u007f-\u009f][^/\u0000-\u001f\u007f-\u009f]*$/;

/** The Python tool keeps its JSON schema under this name among the flows and skips it; so do we. */
export const SCHEMA_STEM = "CHECKPOINT_SCHEMA";

export function isFlowId(text: string): boolean {
  return SLUG.test(text) && !text.includes("..") && text !== SCHEMA_STEM;
}

/** A name that an existing file may have. */
export function isFileStem(text: string): boolean {
  return STEM.test(text) && !text.includes("..") && !isTooLong(text);
}

/** Too long for a guard beside it: nobody can act on it safely. */
export function isTooLong(stem: string): boolean {
  return Buffer.byteLength(stem) > MOST_STEM_BYTES;
}

/** An id for a new workflow or agent. */
export function parseFlowId(text: string, what: "workflow" | "agent"): string {
  if (isFlowId(text)) return text;
  // JSON quoting keeps control characters of a hostile id from reaching the terminal.
  throw new LazarusError("FLOW_ID_INVALID", `${JSON.stringify(shorten(text))} is not a ${what} id`, {
    hint: `use 1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit and without '..': --${what} nightly-report`,
  });
}

/** The id of a workflow that should exist already. */
export function parseStem(text: string): string {
  return isFileStem(text) ? text : parseFlowId(text, "workflow");
}

function shorten(text: string): string {
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
