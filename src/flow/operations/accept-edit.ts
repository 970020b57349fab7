// Accepts a file that was edited by hand, by computing its hash again. Only a wrong hash can be accepted, since only then
// is the content itself valid; any other damage is an error that names the file to edit. Write order: the valid file is
// durable in its place before the quarantined one is removed.
import { crashPoint } from "../../platform/crash-point.ts";
import { createFile, removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { type BadFlow, findQuarantined } from "../document/bad-flow.ts";
import {
  checkDocument,
  FLOW_LIMIT_BYTES,
  type FlowDocument,
  formatFlow,
  withCheckpointHash,
} from "../document/document.ts";
import { parseStem } from "../document/id.ts";
import { damagedError, type FlowName } from "../document/open-flow.ts";
import { parseExact } from "../document/python-json.ts";
import { readFlow, readText } from "../document/read.ts";
import { type FlowPlace, listDirectories, locateFlow, type Workspace } from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import { audit } from "./audit.ts";

/** A flow whose manual edit was accepted. */
export interface AcceptedEdit {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
  readonly from: string;
}

/** Accepts a manual edit of a flow file. */
export async function acceptEdit(workspace: Workspace, { workflow, agent }: FlowName): Promise<AcceptedEdit> {
  const { machine, root } = workspace;
  const stem = parseStem(workflow);
  const found = findBad(root, stem, agent);
  return withChangeMutex(machine, mutexPath(found.place.directory, stem), async () => {
    const { place, bad } = found;
    const source = bad?.file ?? place.file;
    const document = readEdited(place, source);
    if (bad === undefined) replaceFile(machine.disk, place.file, formatFlow(document));
    else if (!createFile(machine.disk, place.file, formatFlow(document))) {
      throw new LazarusError(
        "FLOW_EXISTS",
        `${place.file} exists; the quarantined ${source} was not changed`,
        {
          hint: `lazarus flow show -w ${shellWord(stem)}; then: rm ${shellWord(source)}`,
        },
      );
    }
    crashPoint("flow.accept-edit.written");
    if (bad !== undefined) {
      removeFile(machine.disk, bad.file);
      if (bad.report !== null) removeFile(machine.disk, bad.report);
    }
    await audit(workspace, "mend", { workflowId: stem, from: source });
    return { place, document, from: source };
  });
}

function findBad(
  root: string,
  stem: string,
  agent: string | undefined,
): { place: FlowPlace; bad: BadFlow | undefined } {
  const place = locateFlow(root, stem, agent);
  if (place !== undefined && readFlow(place).state === "bad") return { place, bad: undefined };
  for (const directory of listDirectories(root)) {
    const found = findQuarantined(directory, stem);
    if (found !== undefined) return found;
  }
  throw new LazarusError("FLOW_UNKNOWN", `nothing to accept: ${stem} has no damaged or quarantined file`, {
    hint: `lazarus flow list --root ${shellWord(root)}`,
  });
}

function readEdited(place: FlowPlace, file: string): FlowDocument {
  const text = readText(file, FLOW_LIMIT_BYTES);
  if (typeof text !== "string") {
    if (text.state === "absent") throw new LazarusError("FLOW_UNKNOWN", `${file} no longer exists`);
    throw text.why === "unreadable"
      ? damagedError({ ...place, file }, text)
      : notAcceptable(file, text.reason);
  }
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    throw notAcceptable(file, "is not JSON");
  }
  const verdict = checkDocument(value, place.stem);
  if (verdict.ok) return verdict.document;
  if (verdict.why !== "hash") throw notAcceptable(file, verdict.reason);
  return withCheckpointHash(value as FlowDocument);
}

function notAcceptable(file: string, reason: string): LazarusError {
  return new LazarusError("FLOW_DAMAGED", `${file} ${reason}; it cannot be repaired automatically`, {
    hint: `edit ${shellWord(file)} and run the same command again, or remove it and start over`,
    details: { file },
  });
}
