// Moves a flow file with a bad schema or hash to `.lazarus/quarantine/`, next to a report, where it stays listed until it is
// accepted or removed. A file with a newer schema, or one that cannot be read or moved, stays in place and is reported
// every time. Nothing is deleted here.
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { type BadFlow, badInPlace, FILE_SUFFIX, QUARANTINE, REPORT_SUFFIX } from "../document/bad-flow.ts";
import { formatIso } from "../document/document.ts";
import { makePrivateDirectory } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { readFlow } from "../document/read.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { audit } from "./audit.ts";

/** Moves a bad file to quarantine. The caller holds its mutex. Undefined when the file is valid or missing by now. */
export async function quarantine(workspace: Workspace, place: FlowPlace): Promise<BadFlow | undefined> {
  const { machine } = workspace;
  const reading = readFlow(place);
  if (reading.state !== "bad") return undefined;
  // A file that this process cannot read (permissions, file descriptors) may be valid for another.
  if (reading.why === "newer" || reading.why === "unreadable") return badInPlace(place, reading);
  const directory = makePrivateDirectory(workspace, place.directory, QUARANTINE);
  const time = formatIso(machine.clock.nowMs());
  const name = `${place.stem}.${time.replace(/[^0-9]/g, "").slice(0, 17)}`;
  const target = join(directory, `${name}${FILE_SUFFIX}`);
  const report = join(directory, `${name}${REPORT_SUFFIX}`);
  // The report first, so that a quarantined file is always explained.
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
  if (putBackIfValid(workspace, place, target, report)) return undefined;
  await audit(workspace, "quarantine", { workflowId: place.stem, file: target, why, reason });
  return { workflowId: place.stem, file: target, why, reason, quarantined: true, report };
}

/** Tools that do not use the mutex may have replaced the file before it was moved. `link` never overwrites. */
function putBackIfValid({ machine }: Workspace, place: FlowPlace, target: string, report: string): boolean {
  const moved = readFlow({ ...place, file: target });
  if (moved.state !== "ok") return false;
  try {
    machine.disk.link(target, place.file);
    machine.disk.fsyncDirectory(place.directory);
    // The file is durably back in place. Its quarantined copy would be listed as bad forever.
    removeFile(machine.disk, target);
    removeFile(machine.disk, report);
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
  }
  return true;
}
