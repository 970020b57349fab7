// A flow file that fails its schema or hash is never resumed: it is moved to `.lazarus/quarantine/` with a report beside
// it, and stays listed until someone mends or removes it. Files of a newer schema are left where they are, and so is
// whatever could not be judged or moved: both are reported every time. Nothing is deleted here.
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { type BadFlow, badInPlace, FILE_SUFFIX, QUARANTINE, REPORT_SUFFIX } from "../document/bad-flow.ts";
import { formatIso } from "../document/document.ts";
import { makeOwn } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { readFlow } from "../document/read.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { audit } from "./audit.ts";

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
