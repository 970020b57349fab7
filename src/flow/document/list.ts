// All flows of a workspace, valid and bad, sorted by directory and name. Reads only: 10,000 files take a fraction of a
// second. A bad file or an unreadable directory never hides the rest.
import { type BadFlow, badInPlace, closedInPlace, listQuarantine } from "./bad-flow.ts";
import type { FlowDocument } from "./document.ts";
import { readFlow } from "./read.ts";
import { type FlowPlace, findDirectories, listStems, placeOf } from "./workspace.ts";

/** A flow and where it is stored. */
export interface ListedFlow {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
}

/** The flows of a workspace, and the files that cannot be used. */
export interface FlowList {
  readonly flows: readonly ListedFlow[];
  /** Bad files, in place and in quarantine. */
  readonly bad: readonly BadFlow[];
}

/** Lists the flows of a workspace. */
export function listFlows(root: string): FlowList {
  const flows: ListedFlow[] = [];
  const bad = visitFlows(root, (place, document) => flows.push({ place, document }));
  return { flows, bad };
}

/**
 * Calls `visit` with every valid flow and returns the bad ones. Does not collect the documents: holding 10,000 of them
 * costs more in garbage collection than reading them.
 */
export function visitFlows(
  root: string,
  visit: (place: FlowPlace, document: FlowDocument) => void,
): BadFlow[] {
  const { open, closed } = findDirectories(root);
  const bad = closed.map((directory) => closedInPlace(root, directory));
  for (const directory of open) {
    for (const stem of listStems(directory)) {
      const place = placeOf(directory, stem);
      const reading = readFlow(place);
      if (reading.state === "ok") visit(place, reading.document);
      else if (reading.state === "bad") bad.push(badInPlace(place, reading));
    }
    bad.push(...listQuarantine(directory));
  }
  return bad;
}
