// Finds a flow by its id and opens it, or throws an error that says why not: unknown, in quarantine, damaged, newer.
// Reads only.
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type BadFlow, findQuarantined } from "./bad-flow.ts";
import type { FlowDocument } from "./document.ts";
import { parseStem } from "./id.ts";
import { type FlowReading, readFlow } from "./read.ts";
import { type FlowPlace, listDirectories, locateFlow } from "./workspace.ts";

/** The workflow id of a flow, and its agent if several have that id. */
export interface FlowName {
  readonly workflow: string;
  /** Selects among flows of the same name that belong to different agents. */
  readonly agent?: string | undefined;
}

/** Finds a flow by its workflow id; throws when there is none. */
export function findFlow(root: string, { workflow, agent }: FlowName): FlowPlace {
  const stem = parseStem(workflow);
  return locateFlow(root, stem, agent) ?? throwMissing(root, stem);
}

/** Opens a flow at a known place; throws unless it is valid. */
export function openFlow(root: string, place: FlowPlace): FlowDocument {
  const reading = readFlow(place);
  if (reading.state === "ok") return reading.document;
  if (reading.state === "absent") return throwMissing(root, place.stem);
  throw damagedError(place, reading);
}

export function damagedError(
  place: FlowPlace,
  reading: Extract<FlowReading, { state: "bad" }>,
): LazarusError {
  if (reading.why === "newer") {
    return new LazarusError("FLOW_NEWER", `${place.file} ${reading.reason}`, {
      hint: "upgrade Lazarus on this machine: npm install -g lazarus@latest",
    });
  }
  const unreadable = reading.why === "unreadable";
  if (unreadable) {
    const error = asLazarusError(reading.cause, `reading ${place.file}`, shellWord(place.file));
    if (error.kind === "machine") return error;
  }
  return new LazarusError("FLOW_DAMAGED", `${place.file} ${reading.reason}`, {
    hint: unreadable
      ? `ls -ld ${shellWord(place.file)}`
      : acceptEditHint(reading.why, place.file, place.stem),
    details: { file: place.file, why: reading.why },
  });
}

/** Only a wrong hash can be accepted as it is. */
function acceptEditHint(why: string, file: string, stem: string): string {
  const accept = `lazarus flow accept-edit --workflow ${shellWord(stem)}`;
  return why === "hash"
    ? `check it: less ${shellWord(file)}; then: ${accept}`
    : `repair ${shellWord(file)} in an editor, then: ${accept}; or remove the file and start over`;
}

/** `alternative` is appended to the hint. */
export function quarantinedError(
  { file, why, reason }: BadFlow,
  stem: string,
  alternative = "",
): LazarusError {
  return new LazarusError("FLOW_DAMAGED", `${stem} is in quarantine: ${file} ${reason}`, {
    hint: `${acceptEditHint(why, file, stem)}${alternative}`,
    details: { file, why },
  });
}

function throwMissing(root: string, stem: string): never {
  for (const directory of listDirectories(root)) {
    const found = findQuarantined(directory, stem);
    if (found !== undefined) throw quarantinedError(found.bad, stem);
  }
  throw new LazarusError("FLOW_UNKNOWN", `no workflow ${stem} in ${root}`, {
    hint: `lazarus flow list --root ${shellWord(root)}`,
  });
}
