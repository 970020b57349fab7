// Flow files that cannot be resumed, in place or in `.lazarus/quarantine/`. Reads only; operations/quarantine.ts moves
// files there.
import { readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { quietly } from "../../platform/errors.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import { isPrivateDirectory, privatePath } from "./private-directory.ts";
import { type ClosedDirectory, type FlowPlace, placeOf } from "./workspace.ts";

/** A flow file that cannot be used, and why. */
export interface BadFlow {
  readonly workflowId: string;
  /** Its current path. */
  readonly file: string;
  readonly why: string;
  readonly reason: string;
  readonly quarantined: boolean;
  readonly report: string | null;
}

export const REPORT_SUFFIX = ".report.json";
export const FILE_SUFFIX = ".flow";

export const QUARANTINE = "quarantine";

/** A bad file that was not moved. */
export function badInPlace(place: FlowPlace, { why, reason }: { why: string; reason: string }): BadFlow {
  return { workflowId: place.stem, file: place.file, why, reason, quarantined: false, report: null };
}

/** A directory that cannot be listed. */
export function closedInPlace(root: string, { directory, reason }: ClosedDirectory): BadFlow {
  const workflowId = relative(root, directory);
  return { workflowId, file: directory, why: "unreadable", reason, quarantined: false, report: null };
}

/** The quarantined files of a directory, sorted by name. */
export function listQuarantine(directory: string): BadFlow[] {
  const quarantined = privatePath(directory, QUARANTINE);
  if (!isPrivateDirectory(directory, QUARANTINE)) return [];
  const names = quietly(() => readdirSync(quarantined)) ?? [];
  return names
    .filter((name) => name.endsWith(FILE_SUFFIX))
    .sort()
    .map((name) => describe(join(quarantined, name)));
}

function describe(file: string): BadFlow {
  const report = file.slice(0, -FILE_SUFFIX.length) + REPORT_SUFFIX;
  const reading = readJsonFile(report);
  const readText = (field: string, fallback: string) => {
    const value = reading.ok ? reading.value[field] : undefined;
    return typeof value === "string" ? value : fallback;
  };
  return {
    workflowId: readText("workflowId", basename(file, FILE_SUFFIX).replace(/\.\d+$/, "")),
    file,
    why: readText("why", "unreadable"),
    reason: readText("reason", "its report is missing"),
    quarantined: true,
    report: reading.ok ? report : null,
  };
}

/** The newest quarantined file of a workflow, with the place it came from. */
export function findQuarantined(
  directory: string,
  stem: string,
): { bad: BadFlow; place: FlowPlace } | undefined {
  const bad = listQuarantine(directory).findLast((each) => each.workflowId === stem);
  return bad === undefined ? undefined : { bad, place: placeOf(directory, stem) };
}
