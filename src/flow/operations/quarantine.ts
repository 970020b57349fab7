// A flow file that fails its schema or hash is never resumed: it is moved to `.lazarus/quarantine/` with a report beside
// it, and stays listed until someone mends or removes it. Files of a newer schema are left where they are, and so is
// whatever could not be judged or moved: both are reported every time. Nothing is deleted here.
import { readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import { formatIso } from "../document/document.ts";
import { isOwn, makeOwn, ownPath } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { readFlow } from "../document/read.ts";
import { type ClosedDirectory, type FlowPlace, placeOf, type Workspace } from "../document/workspace.ts";
import { audit } from "./audit.ts";

export interface BadFlow {
  readonly workflowId: string;
  /** Where it lies now. */
  readonly file: string;
  readonly why: string;
  readonly reason: string;
  readonly quarantined: boolean;
  readonly report: string | null;
}

const REPORT_SUFFIX = ".report.json";
const FILE_SUFFIX = ".flow";

const QUARANTINE = "quarantine";

/** A bad file that stays where it is. */
export function badInPlace(place: FlowPlace, { why, reason }: { why: string; reason: string }): BadFlow {
  return { workflowId: place.stem, file: place.file, why, reason, quarantined: false, report: null };
}

/** A directory whose flows nobody here can see. */
export function closedInPlace(root: string, { directory, reason }: ClosedDirectory): BadFlow {
  const workflowId = relative(root, directory);
  return { workflowId, file: directory, why: "unreadable", reason, quarantined: false, report: null };
}

/** Moves a bad file away, inside its guard. Undefined when it turned out to be healthy or gone. */
export async function quarantine(workspace: Workspace, place: FlowPlace): Promise<BadFlow | undefined> {
  const { machine } = workspace;
  const reading = readFlow(place);
  if (reading.state !== "bad") return undefined;
  // A file that this process may not read, or cannot for want of descriptors, may be healthy for the next.
  if (reading.why === "newer" || reading.why === "unreadable") return badInPlace(place, reading);
  const directory = makeOwn(workspace, place.directory, QUARANTINE);
  const time = formatIso(machine.clock.nowMs());
  const name = `${place.stem}.${time.replace(/[^0-9]/g, "").slice(0, 17)}`;
  const target = join(directory, `${name}${FILE_SUFFIX}`);
  const report = join(directory, `${name}${REPORT_SUFFIX}`);
  // The report first: a report without its file is noise, a file without its report a riddle.
  const { why, reason } = reading;
  const content = {
    schema: "lazarus.flow-quarantine/1",
    workflowId: place.stem,
    from: place.file,
    file: target,
  };
  createFile(machine.disk, report, formatExact({ ...content, why, reason, time }));
  crashPoint("flow.quarantine.reported");
  machine.disk.rename(place.file, target);
  machine.disk.fsyncDirectory(directory);
  machine.disk.fsyncDirectory(place.directory);
  crashPoint("flow.quarantine.moved");
  if (putBackIfHealthy(workspace, place, target, report)) return undefined;
  await audit(workspace, "quarantine", { workflowId: place.stem, file: target, why, reason });
  return { workflowId: place.stem, file: target, why, reason, quarantined: true, report };
}

/** Tools that know no guard may have replaced the file between our look and our move; `link` overwrites nothing. */
function putBackIfHealthy({ machine }: Workspace, place: FlowPlace, target: string, report: string): boolean {
  const moved = readFlow({ ...place, file: target });
  if (moved.state !== "ok") return false;
  try {
    machine.disk.link(target, place.file);
    machine.disk.fsyncDirectory(place.directory);
    // Back in its place, durably: what lies here would be listed as bad for ever.
    removeFile(machine.disk, target);
    removeFile(machine.disk, report);
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
  }
  return true;
}

/** What lies in a directory's quarantine, in order of name. */
export function listQuarantine(directory: string): BadFlow[] {
  const quarantined = ownPath(directory, QUARANTINE);
  if (!isOwn(directory, QUARANTINE)) return [];
  let names: string[];
  try {
    names = readdirSync(quarantined);
  } catch {
    return [];
  }
  return names
    .filter((name) => name.endsWith(FILE_SUFFIX))
    .sort()
    .map((name) => describe(join(quarantined, name)));
}

function describe(file: string): BadFlow {
  const report = file.slice(0, -FILE_SUFFIX.length) + REPORT_SUFFIX;
  const reading = readJsonFile(report);
  const says = (field: string, otherwise: string) => {
    const value = reading.ok ? reading.value[field] : undefined;
    return typeof value === "string" ? value : otherwise;
  };
  return {
    workflowId: says("workflowId", basename(file, FILE_SUFFIX).replace(/\.\d+$/, "")),
    file,
    why: says("why", "unreadable"),
    reason: says("reason", "its report is missing"),
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
