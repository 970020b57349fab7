// Finds one flow by its id and opens it, or says in words why not: unknown, in quarantine, damaged, newer. Reads only.
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type BadFlow, findQuarantined } from "./bad-flow.ts";
import type { FlowDocument } from "./document.ts";
import { parseStem } from "./id.ts";
import { type FlowReading, readFlow } from "./read.ts";
import { type FlowPlace, listDirectories, locateFlow } from "./workspace.ts";

export interface FlowName {
  readonly workflow: string;
  /** Only to tell namesakes of several agents apart. */
  readonly agent?: string | undefined;
}

export function findFlow(root: string, { workflow, agent }: FlowName): FlowPlace {
  const stem = parseStem(workflow);
  return locateFlow(root, stem, agent) ?? missing(root, stem);
}

/** Opens a flow at a known place; throws unless it is healthy. */
export function openFlow(root: string, place: FlowPlace): FlowDocument {
  const reading = readFlow(place);
  if (reading.state === "ok") return reading.document;
  if (reading.state === "absent") return missing(root, place.stem);
  throw damaged(place, reading);
}

export function damaged(place: FlowPlace, reading: Extract<FlowReading, { state: "bad" }>): LazarusError {
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
  return new LazarusError("FLOW_DAMAGED", `${place.file} ${reading.reason}; it is not resumed`, {
    hint: unreadable ? `ls -ld ${shellWord(place.file)}` : lookThenMend(place.file, place.stem),
    details: { file: place.file, why: reading.why },
  });
}

function lookThenMend(file: string, stem: string): string {
  return `look at it: less ${shellWord(file)}; then: lazarus flow mend --workflow ${shellWord(stem)}`;
}

/** `otherwise` is what else one may do than mend it. */
export function inQuarantine({ file, why, reason }: BadFlow, stem: string, otherwise = ""): LazarusError {
  return new LazarusError("FLOW_DAMAGED", `${stem} is in quarantine: ${file} ${reason}`, {
    hint: `${lookThenMend(file, stem)}${otherwise}`,
    details: { file, why },
  });
}

function missing(root: string, stem: string): never {
  for (const directory of listDirectories(root)) {
    const found = findQuarantined(directory, stem);
    if (found !== undefined) throw inQuarantine(found.bad, stem);
  }
  throw new LazarusError("FLOW_UNKNOWN", `there is no workflow ${stem} in ${root}`, {
    hint: `lazarus flow list --root ${shellWord(root)}`,
  });
}
